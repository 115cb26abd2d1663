-- name: insert
INSERT INTO kizami_jobs (
  app, binding, shard, local_id, state, pile, priority, order_key, due_at, attempts_allowed, max_attempts, guarantee,
  timeout_ms, backoff, payload, schedule, scheduled_at, manual, lease, created_at
)
VALUES (
  :app, :binding, :shard, :local_id, 'SCHEDULED', :pile, :priority, :order_key, :due_at, :max_attempts, :max_attempts,
  :guarantee, :timeout_ms, :backoff, :payload, :schedule, :scheduled_at, :manual, :lease, :now
)
ON CONFLICT (app, binding, shard, local_id) DO NOTHING
RETURNING key

-- name: promote
UPDATE kizami_jobs SET pile = 'ready'
WHERE key IN (
  SELECT key FROM kizami_jobs WHERE app = :app AND pile = 'waiting' AND due_at <= :now ORDER BY due_at LIMIT :limit
)

-- name: next_ready_shard
-- The next binding and shard with ready jobs: a skip along the ready index, whatever the number of jobs.
SELECT binding, shard FROM kizami_jobs
WHERE app = :app AND (binding, shard) > (:binding, :shard) AND pile = 'ready' ORDER BY binding, shard LIMIT 1

-- name: ready_of_shard
SELECT key, order_key FROM kizami_jobs
WHERE app = :app AND binding = :binding AND shard = :shard AND pile = 'ready' ORDER BY order_key, key LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: next_due
SELECT due_at FROM kizami_jobs
WHERE app = :app AND pile = 'waiting' ORDER BY due_at LIMIT 1

-- name: claim
UPDATE kizami_jobs
SET state = 'QUEUED', pile = NULL, claim = claim + 1, attempt = attempt + 1, worker_id = :worker_id,
  alive_until_at = :now + timeout_ms + :grace_ms, claimed_at = :now, started_at = :now, ended_at = NULL, progress = NULL
WHERE key IN (SELECT value::bigint FROM json_array_elements_text(:keys::json)) AND pile = 'ready'
RETURNING *

-- name: start
UPDATE kizami_jobs
SET state = 'RUNNING', started_at = :now
WHERE key = :key AND claim = :claim AND state = 'QUEUED'

-- name: alive
UPDATE kizami_jobs
SET alive_until_at = greatest(alive_until_at, :now + :alive_ms), progress = coalesce(:progress, progress)
WHERE key = :key AND claim = :claim AND state IN ('QUEUED', 'RUNNING')

-- name: held
SELECT * FROM kizami_jobs WHERE key = :key AND claim = :claim

-- name: end
UPDATE kizami_jobs
SET state = :state, worker_id = NULL, alive_until_at = NULL, ended_at = :now, result = :result,
  result_note = :result_note, error = :error, progress = coalesce(:progress, progress)
WHERE key = :key AND claim = :claim AND state IN ('QUEUED', 'RUNNING')

-- name: again
UPDATE kizami_jobs
SET state = 'SCHEDULED', worker_id = NULL, alive_until_at = NULL, due_at = :due_at,
  pile = CASE WHEN :due_at <= :now THEN 'ready' ELSE 'waiting' END,
  attempt = attempt - :attempt_back, retries = retries + :retry, snoozes = :snoozes, error = coalesce(:error, error)
WHERE key = :key AND claim = :claim AND state IN ('QUEUED', 'RUNNING')

-- name: landed_already
-- Only a first-try success leaves no line in the log; COMPLETED is final, so its claim is still the job's.
SELECT 1 FROM kizami_attempts
WHERE job_key = :key AND claim = :claim AND outcome = :outcome AND started_at = :started_at AND ended_at = :ended_at
UNION ALL
SELECT 1 FROM kizami_jobs
WHERE key = :key AND claim = :claim AND state = 'COMPLETED' AND :state = 'COMPLETED' AND result IS NOT DISTINCT FROM :result

-- name: log_attempt
INSERT INTO kizami_attempts (job_key, number, attempt, claim, outcome, error, worker_id, started_at, ended_at)
SELECT :key, 1 + coalesce((SELECT max(number) FROM kizami_attempts WHERE job_key = :key), 0), :attempt, :claim, :outcome,
  :error, :worker_id, :started_at, :ended_at

-- name: trim_attempts
DELETE FROM kizami_attempts
WHERE job_key = :key AND number <= (SELECT max(number) FROM kizami_attempts WHERE job_key = :key) - 20

-- name: active
SELECT *, '' AS boot_id, alive_until_at AS alive_until_boot FROM kizami_jobs
WHERE app = :app AND state IN ('QUEUED', 'RUNNING')

-- name: active_of_worker
SELECT *, '' AS boot_id, alive_until_at AS alive_until_boot FROM kizami_jobs
WHERE app = :app AND worker_id = :worker_id AND state IN ('QUEUED', 'RUNNING')

-- name: take
UPDATE kizami_jobs
SET claim = claim + 1, state = :state, pile = :pile, worker_id = NULL, alive_until_at = NULL, due_at = :now,
  retries = retries + :retry, error = :error, ended_at = :ended_at
WHERE key = :key AND claim = :claim AND state IN ('QUEUED', 'RUNNING')

-- name: skip_fire_by_lease
UPDATE kizami_fires SET outcome = 'skipped_lease', reason = :reason
WHERE app = :app AND schedule = :schedule AND planned_at = :scheduled_at AND kind <> 'manual' AND outcome = 'fired'

-- name: count_lease_skip
UPDATE kizami_schedules
SET fired_count = fired_count - 1, skipped_count = skipped_count + 1, skipped_at = :now
WHERE app = :app AND name = :schedule

-- name: by_identity
SELECT * FROM kizami_jobs WHERE app = :app AND binding = :binding AND shard = :shard AND local_id = :local_id

-- name: attempts
SELECT attempt, outcome, error, worker_id, started_at, ended_at FROM kizami_attempts WHERE job_key = :key ORDER BY number

-- name: retry
UPDATE kizami_jobs
SET state = 'SCHEDULED', pile = 'ready', due_at = :now, attempts_allowed = attempt + max_attempts, ended_at = NULL,
  retries = 0, snoozes = 0, progress = NULL, claim = claim + 1
WHERE key = :key

-- name: cancel
UPDATE kizami_jobs SET state = 'CANCELLED', pile = NULL, ended_at = :now WHERE key = :key AND state = 'SCHEDULED'

-- name: count_by_state
SELECT binding, state, count(*) FROM kizami_jobs WHERE app = :app GROUP BY binding, state

-- name: purge
DELETE FROM kizami_jobs
WHERE key IN (
  SELECT key FROM kizami_jobs
  WHERE app = :app AND ended_at IS NOT NULL AND ended_at <= :before ORDER BY ended_at LIMIT :limit
)

-- name: page
SELECT * FROM kizami_jobs
WHERE app = :app AND key < :before AND (:binding::text IS NULL OR binding = :binding)
  AND (:schedule::text IS NULL OR schedule = :schedule)
  AND (:states::text IS NULL OR state IN (SELECT value FROM json_array_elements_text(:states::json)))
ORDER BY key DESC LIMIT :limit
