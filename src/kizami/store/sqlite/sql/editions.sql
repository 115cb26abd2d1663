-- name: number
SELECT number FROM kizami_editions WHERE app = :app AND fingerprint = :fingerprint

-- name: add
INSERT INTO kizami_editions (app, fingerprint, number, first_run_at)
SELECT :app, :fingerprint, coalesce(max(number), 0) + 1, :now FROM kizami_editions WHERE app = :app
RETURNING number

-- name: put_in_force
UPDATE kizami_editions SET in_force = (number = :number) WHERE app = :app AND in_force <> (number = :number)

-- name: run
UPDATE kizami_workers SET edition = :number, seen_at = :now, seen_boot = :boot WHERE worker_id = :worker_id

-- A worker of an earlier boot is gone, whatever its row says.
-- name: present
SELECT
  (SELECT number FROM kizami_editions WHERE app = :app AND in_force) AS in_force,
  (
    SELECT max(edition) FROM kizami_workers
    WHERE app = :app AND worker_id IS NOT :worker_id AND boot_id = :boot_id AND seen_boot >= :boot - :silent_ms
  ) AS others

-- name: remember
INSERT INTO kizami_definitions (app, schedule, fingerprint, version)
SELECT app, name, fingerprint, version FROM kizami_schedules WHERE app = :app AND name = :name
ON CONFLICT (app, schedule, fingerprint) DO UPDATE SET version = excluded.version

-- name: last_version
SELECT version FROM kizami_definitions WHERE app = :app AND schedule = :schedule AND fingerprint = :fingerprint
