-- name: register
INSERT INTO kizami_workers (
  worker_id, app, host, boot_id, pid_namespace, pid, started, bindings, started_at, seen_at, note, seen_boot
)
VALUES (
  :worker_id, :app, :host, :process_boot_id, :pid_namespace, :pid, :started, :bindings, :now, :now, :note, :boot
)

-- name: list
SELECT worker_id, app, host, boot_id, pid_namespace, pid, started, bindings, started_at, seen_at, note
FROM kizami_workers
WHERE :app IS NULL OR app = :app ORDER BY started_at, worker_id

-- name: seen
UPDATE kizami_workers SET seen_at = :now, seen_boot = :boot WHERE worker_id = :worker_id

-- name: remove
DELETE FROM kizami_workers WHERE worker_id = :worker_id RETURNING app

-- name: note
UPDATE kizami_workers SET note = :note WHERE worker_id = :worker_id
