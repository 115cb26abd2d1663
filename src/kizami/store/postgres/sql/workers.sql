-- name: register
INSERT INTO kizami_workers (
  worker_id, app, host, boot_id, pid_namespace, pid, started, bindings, started_at, seen_at, note
)
VALUES (
  :worker_id, :app, :host, :process_boot_id, :pid_namespace, :pid, :started, :bindings, :now, :now, :note
)

-- name: list
SELECT worker_id, app, host, boot_id, pid_namespace, pid, started, bindings, started_at, seen_at, note
FROM kizami_workers
WHERE :app::text IS NULL OR app = :app ORDER BY started_at, worker_id

-- name: seen
UPDATE kizami_workers SET seen_at = :now WHERE worker_id = :worker_id

-- name: remove
DELETE FROM kizami_workers WHERE worker_id = :worker_id RETURNING app

-- What a worker still holds is freed by whoever finds its process gone, and its row is what leads there.
-- name: leave
DELETE FROM kizami_workers
WHERE worker_id = :worker_id
  AND NOT EXISTS (SELECT 1 FROM kizami_leases AS l WHERE l.worker_id = :worker_id)
  AND NOT EXISTS (SELECT 1 FROM kizami_deliveries AS d WHERE d.claim_worker = :worker_id)
  AND NOT EXISTS (SELECT 1 FROM kizami_boards AS b WHERE b.claim_worker = :worker_id)

-- name: note
UPDATE kizami_workers SET note = :note WHERE worker_id = :worker_id
