-- name: stored
SELECT * FROM kizami_schedules WHERE app = :app

-- Others wait until the end of this transaction: on SQLite they do anyway.
-- name: hold_app
SELECT :app

-- name: held
SELECT * FROM kizami_schedules WHERE app = :app AND name = :name AND removed_at IS NULL

-- name: one
SELECT * FROM kizami_schedules WHERE app = :app AND name = :name AND removed_at IS NULL

-- name: listed
SELECT * FROM kizami_schedules WHERE app = :app AND removed_at IS NULL ORDER BY name

-- name: insert
INSERT INTO kizami_schedules (
  app, name, version, fingerprint, timing, timing_fingerprint, binding, overlap, driver, lease, description, zone_data,
  anchor_at, planned_at, registered_at
)
VALUES (
  :app, :name, 1, :fingerprint, :timing, :timing_fingerprint, :binding, :overlap, :driver, :lease, :description,
  :zone_data, :now, :planned_at, :now
)

-- name: redefine
UPDATE kizami_schedules
SET version = version + 1, fingerprint = :fingerprint, timing = :timing, timing_fingerprint = :timing_fingerprint,
  binding = :binding, overlap = :overlap, driver = :driver, lease = :lease, description = :description,
  zone_data = :zone_data, anchor_at = :anchor_at, planned_at = :planned_at, settled_local = :settled_local,
  removed_at = NULL, registered_at = :now
WHERE app = :app AND name = :name

-- name: replan
-- By another edition of the time-zone database.
UPDATE kizami_schedules SET planned_at = :planned_at, zone_data = :zone_data, settled_local = :settled_local
WHERE app = :app AND name = :name

-- name: mend
UPDATE kizami_schedules SET timing = :timing, timing_fingerprint = :timing_fingerprint
WHERE app = :app AND name = :name

-- name: remove
UPDATE kizami_schedules SET version = version + 1, removed_at = :now, planned_at = NULL, fingerprint = ''
WHERE app = :app AND name = :name AND removed_at IS NULL

-- name: due
SELECT s.name, s.version, s.planned_at, s.timing, h.binding, h.shard, j.local_id, j.state
FROM kizami_schedules AS s INDEXED BY kizami_schedules_due
LEFT JOIN kizami_jobs AS j ON j.key = s.last_job_key
LEFT JOIN kizami_shards AS h ON h.shard_key = j.shard_key
WHERE s.app = :app AND s.planned_at <= :now AND s.planned_at IS NOT NULL AND s.paused_at IS NULL
  AND s.removed_at IS NULL
ORDER BY s.planned_at

-- name: next_planned
SELECT planned_at FROM kizami_schedules INDEXED BY kizami_schedules_due
WHERE app = :app AND planned_at > :now AND planned_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL
ORDER BY planned_at LIMIT 1

-- name: previous_job
SELECT h.binding, h.shard, j.local_id, j.state
FROM kizami_jobs AS j JOIN kizami_shards AS h ON h.shard_key = j.shard_key
WHERE j.key = :key

-- name: record
INSERT INTO kizami_fires (
  app, schedule, kind, outcome, planned_at, planned_last_at, count, acted_at, by, job_id, reason, version
)
VALUES (
  :app, :schedule, :kind, :outcome, :planned_at, :planned_last_at, :count, :now, :by, :job_id, :reason, :version
)
ON CONFLICT (app, schedule, planned_at) WHERE kind <> 'manual' DO NOTHING

-- The line that accounts for a planned time, if any does, is the nearest one: lines share no instant.
-- name: recorded
SELECT * FROM kizami_fires
WHERE app = :app AND schedule = :schedule AND planned_at <= :planned_at AND kind <> 'manual'
ORDER BY planned_at DESC LIMIT 1

-- name: settle
UPDATE kizami_schedules
SET planned_at = :next_at, settled_at = max(coalesce(settled_at, 0), :settled_at),
  settled_local = max(coalesce(settled_local, :settled_local), :settled_local),
  last_planned_at = CASE WHEN :fired THEN :scheduled_at ELSE last_planned_at END,
  last_fired_at = CASE WHEN :fired THEN :now ELSE last_fired_at END,
  last_job_id = CASE WHEN :fired THEN :job_id ELSE last_job_id END,
  last_job_key = CASE WHEN :fired THEN :job_key ELSE last_job_key END,
  fired_count = fired_count + :fired,
  skipped_count = skipped_count + :skipped,
  skipped_at = CASE WHEN :skipped THEN :now ELSE skipped_at END,
  missed_count = missed_count + :missed,
  failed_count = failed_count + (:error IS NOT NULL),
  last_error = coalesce(:error, last_error),
  last_error_at = CASE WHEN :error IS NOT NULL THEN :now ELSE last_error_at END
WHERE app = :app AND name = :schedule

-- name: next_manual
UPDATE kizami_schedules SET manual_sequence = manual_sequence + 1 WHERE app = :app AND name = :name
RETURNING manual_sequence

-- name: manual_error
UPDATE kizami_schedules SET last_error = :error, last_error_at = :now
WHERE app = :app AND name = :name

-- name: pause
UPDATE kizami_schedules SET paused_at = :now WHERE app = :app AND name = :name AND paused_at IS NULL

-- name: resume
UPDATE kizami_schedules SET paused_at = NULL, planned_at = :next_at WHERE app = :app AND name = :name

-- name: drop
UPDATE kizami_schedules
SET settled_at = max(coalesce(settled_at, 0), :settled_at), missed_count = missed_count + :dropped,
  settled_local = max(coalesce(settled_local, :settled_local), :settled_local)
WHERE app = :app AND name = :name

-- name: ledger
SELECT * FROM kizami_fires WHERE app = :app ORDER BY id DESC LIMIT :limit

-- name: ledger_of_schedule
SELECT * FROM kizami_fires WHERE app = :app AND schedule = :schedule ORDER BY id DESC LIMIT :limit

-- name: held_lease
SELECT holder, started_at, heartbeat_at, CASE WHEN boot_id = :boot_id THEN :boot - heartbeat_boot END AS silent_ms
FROM kizami_leases
WHERE app = :app AND name = :lease AND run_id IS NOT NULL
