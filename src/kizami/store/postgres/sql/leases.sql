-- The whole acquisition is one conditional write: free, silent for too long, or this very run again (a repeated call
-- after a lost answer).
-- name: acquire
INSERT INTO kizami_leases (app, name, run_id, holder, worker_id, started_at, heartbeat_at)
VALUES (:app, :name, :run_id, :holder, :worker_id, :now, :now)
ON CONFLICT (app, name) DO UPDATE SET
  started_at   = CASE WHEN kizami_leases.run_id = excluded.run_id THEN kizami_leases.started_at
                 ELSE excluded.started_at END,
  run_id       = excluded.run_id,
  holder       = excluded.holder,
  worker_id    = excluded.worker_id,
  heartbeat_at = excluded.heartbeat_at
WHERE kizami_leases.run_id IS NULL
   OR kizami_leases.run_id = excluded.run_id
   OR kizami_leases.heartbeat_at < :now - :stale_ms

-- name: renew
UPDATE kizami_leases SET heartbeat_at = :now WHERE app = :app AND name = :name AND run_id = :run_id

-- name: is_held
SELECT 1 FROM kizami_leases WHERE app = :app AND name = :name AND run_id = :run_id

-- name: release
UPDATE kizami_leases SET run_id = NULL, holder = NULL, worker_id = NULL, started_at = NULL, heartbeat_at = NULL
WHERE app = :app AND name = :name AND run_id = :run_id

-- name: free_of
UPDATE kizami_leases SET run_id = NULL, holder = NULL, worker_id = NULL, started_at = NULL, heartbeat_at = NULL
WHERE worker_id = :worker_id

-- name: list
SELECT app, name, run_id, holder, worker_id, started_at, heartbeat_at FROM kizami_leases WHERE app = :app ORDER BY name
