-- name: home
-- A binding's stored facts, for whoever enqueues; with the number of each of its shards.
SELECT b.*, '' AS stamp, s.shard, s.shard_key
FROM kizami_bindings AS b JOIN kizami_shards AS s ON s.app = b.app AND s.binding = b.name
WHERE b.app = :app AND b.name = :name

-- name: take_keys
-- Keys for `count` new jobs, in ranges from first to last.
UPDATE kizami_last_key SET key = max(key + 1, :now << 20) + :count - 1 WHERE id = 1
RETURNING key - :count + 1 AS first, key AS last

-- name: insert
-- '' and 0 stand for NULL here and in the ends below: Python's sqlite3 looks for an adapter of each None that it binds,
-- which was a third of the time of an insert.
INSERT INTO kizami_jobs (
  key, shard_key, local_id, state, pile, priority, rank, order_key, due_at, first_due_at, concurrency_key, unique_key,
  partition_key, attempts_allowed, max_attempts, guarantee, timeout_ms, backoff, schedule, scheduled_at, manual, lease,
  payload
)
VALUES (
  ?1, ?2, ?3, 'SCHEDULED', ?4, ?5, ?6, ?7, ?8, ?9, nullif(?10, ''), nullif(?11, ''), nullif(?12, ''), ?13, ?13, ?14, ?15,
  nullif(?16, ''), nullif(?17, ''), nullif(?18, 0), ?19, nullif(?20, ''), ?21
)
ON CONFLICT (shard_key, local_id) DO NOTHING

-- name: not_inserted
SELECT value FROM json_each(:keys) WHERE NOT EXISTS (SELECT 1 FROM kizami_jobs WHERE key = value)

-- name: state_of
SELECT state FROM kizami_jobs WHERE shard_key = :shard_key AND local_id = :local_id

-- name: reserve
INSERT INTO kizami_reservations (shard_key, unique_key, job_shard_key, local_id, until_at)
VALUES (:shard_key, :unique_key, :shard_key, :local_id, :until_at)
ON CONFLICT (shard_key, unique_key) DO UPDATE
SET job_shard_key = excluded.job_shard_key, local_id = excluded.local_id, until_at = excluded.until_at
WHERE until_at <= :now
RETURNING local_id

-- name: reserved
SELECT r.local_id, r.job_shard_key, s.shard
FROM kizami_reservations AS r JOIN kizami_shards AS s ON s.shard_key = r.job_shard_key
WHERE r.shard_key = :shard_key AND r.unique_key = :unique_key

-- name: count
INSERT INTO kizami_counts (shard_key, state, pile, n) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (shard_key, state, pile) DO UPDATE SET n = n + excluded.n

-- name: promote
UPDATE kizami_jobs SET pile = 'ready'
WHERE key IN (
  SELECT key FROM kizami_jobs INDEXED BY kizami_jobs_waiting
  WHERE shard_key = :shard_key AND pile = 'waiting' AND due_at <= :now ORDER BY due_at LIMIT :limit
)

-- name: hold_shards
-- For those who free places of keys; claims take turns anyway.
SELECT :shard_keys

-- name: shards_with_work
-- The shards of the wanted bindings that have unstarted jobs or a policy to be worked in; the counts tell at no cost.
SELECT s.*, b.policy, b.override, b.paused_at,
  coalesce(
    (SELECT n FROM kizami_counts WHERE shard_key = s.shard_key AND state = 'SCHEDULED' AND pile = 'ready'), 0
  ) AS ready,
  (
    SELECT due_at FROM kizami_jobs INDEXED BY kizami_jobs_waiting
    WHERE shard_key = s.shard_key AND pile = 'waiting' ORDER BY due_at LIMIT 1
  ) AS next_due_at,
  (SELECT coalesce(sum(n), 0) FROM kizami_counts WHERE shard_key = s.shard_key AND state IN ('QUEUED', 'RUNNING'))
    AS active
FROM json_each(:bindings) AS w
CROSS JOIN kizami_bindings AS b ON b.app = :app AND b.name = w.value
CROSS JOIN kizami_shards AS s ON s.app = b.app AND s.binding = b.name
WHERE :hold IS NOT NULL AND (
  s.rekey_after IS NOT NULL
  OR EXISTS (SELECT 1 FROM kizami_counts WHERE shard_key = s.shard_key AND state = 'SCHEDULED' AND n > 0)
)

-- name: ready_of_shard
SELECT rank, order_key, key, concurrency_key FROM kizami_jobs INDEXED BY kizami_jobs_ready
WHERE shard_key = :shard_key AND pile = 'ready' ORDER BY rank, order_key, key LIMIT :limit

-- name: active_by_key
SELECT value AS concurrency_key, (
  SELECT count(*) FROM kizami_jobs INDEXED BY kizami_jobs_active
  WHERE shard_key = :shard_key AND concurrency_key = value AND state IN ('QUEUED', 'RUNNING')
) AS active
FROM json_each(:keys)

-- name: claim
UPDATE kizami_jobs
SET state = 'QUEUED', pile = NULL, claim = claim + 1, attempt = attempt + 1, worker_id = :worker_id, boot_id = :boot_id,
  alive_until_boot = :boot + timeout_ms + :grace_ms, grace_ms = :grace_ms, started_at = :now,
  ended_at = NULL, progress = NULL
WHERE key IN (SELECT value FROM json_each(:keys)) AND pile = 'ready'
RETURNING key, claim, shard_key, local_id, payload, attempt, attempts_allowed, retries, snoozes, priority, max_attempts,
  backoff, timeout_ms, guarantee, concurrency_key, unique_key, partition_key, schedule, scheduled_at, manual, lease

-- name: block
UPDATE kizami_jobs SET pile = 'blocked' WHERE key IN (SELECT value FROM json_each(:keys)) AND pile = 'ready'
RETURNING shard_key

-- name: unblock
-- The first blocked job of a key comes back when a holder's place is free.
UPDATE kizami_jobs SET pile = 'ready'
WHERE key = (
  SELECT key FROM kizami_jobs INDEXED BY kizami_jobs_blocked
  WHERE shard_key = :shard_key AND concurrency_key = :concurrency_key AND pile = 'blocked'
  ORDER BY rank, order_key, key LIMIT 1
)

-- name: any_blocked
SELECT 1 FROM kizami_counts WHERE shard_key = :shard_key AND state = 'SCHEDULED' AND pile = 'blocked' AND n > 0

-- name: write_bucket
UPDATE kizami_shards
SET bucket_tokens = :tokens, bucket_interval_ms = :interval_ms, bucket_level = :level, bucket_at = :at,
  bucket_clock_id = :clock_id
WHERE shard_key = :shard_key

-- name: to_rekey
SELECT key, state, pile, priority, first_due_at FROM kizami_jobs INDEXED BY kizami_jobs_created
WHERE shard_key = :shard_key AND key > :after ORDER BY key LIMIT :limit

-- name: rekey
UPDATE kizami_jobs SET rank = ?1, order_key = ?2, pile = CASE pile WHEN 'blocked' THEN 'ready' ELSE pile END
WHERE key = ?3

-- name: move_rekey_cursor
UPDATE kizami_shards SET rekey_after = :after WHERE shard_key = :shard_key

-- name: start
UPDATE kizami_jobs
SET state = 'RUNNING', started_at = :now
WHERE key = :key AND claim = :claim AND state = 'QUEUED'
RETURNING shard_key

-- name: alive
-- beats: a list of [key, claim, alive_ms, progress].
UPDATE kizami_jobs
SET alive_until_boot = max(alive_until_boot, :boot + (b.value ->> 2)), progress = coalesce(b.value ->> 3, progress)
FROM json_each(:beats) AS b
WHERE kizami_jobs.key = b.value ->> 0 AND claim = b.value ->> 1 AND state IN ('QUEUED', 'RUNNING')
  AND boot_id = :boot_id
RETURNING kizami_jobs.key, claim

-- name: held
SELECT key, claim, state, shard_key, local_id, worker_id, attempt, snoozes, concurrency_key, schedule, scheduled_at,
  manual, lease
FROM kizami_jobs WHERE key IN (SELECT value FROM json_each(:keys))

-- name: end
UPDATE kizami_jobs
SET state = ?1, worker_id = NULL, alive_until_boot = NULL, ended_at = ?2, result = nullif(?3, ''),
  result_note = nullif(?4, ''), error = nullif(?5, ''), progress = coalesce(?6, progress)
WHERE key = ?7 AND claim = ?8 AND state IN ('QUEUED', 'RUNNING')

-- name: complete_first_try
-- The commonest end, without what only other ends write; whoever doesn't fit is looked at one by one.
UPDATE kizami_jobs
SET state = 'COMPLETED', worker_id = NULL, alive_until_boot = NULL, ended_at = ?1, result = nullif(?2, ''),
  result_note = nullif(?3, ''), progress = 1.0
WHERE key = ?4 AND claim = 1 AND state = 'QUEUED'

-- name: again
UPDATE kizami_jobs
SET state = 'SCHEDULED', pile = ?1, worker_id = NULL, alive_until_boot = NULL, due_at = ?2, attempt = attempt - ?3,
  retries = retries + ?4, snoozes = ?5, error = coalesce(?6, error)
WHERE key = ?7 AND claim = ?8 AND state IN ('QUEUED', 'RUNNING')

-- name: landed_already
-- Only a first-try success leaves no line in the log; COMPLETED is final, so its claim is still the job's.
SELECT 1 FROM kizami_attempts
WHERE job_key = :key AND claim = :claim AND outcome = :outcome AND started_at = :started_at AND ended_at = :ended_at
UNION ALL
SELECT 1 FROM kizami_jobs
WHERE key = :key AND claim = :claim AND state = 'COMPLETED' AND :state = 'COMPLETED' AND result IS :result

-- name: log_attempt
INSERT INTO kizami_attempts (job_key, number, attempt, claim, outcome, error, worker_id, started_at, ended_at)
SELECT ?1, 1 + coalesce((SELECT max(number) FROM kizami_attempts WHERE job_key = ?1), 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8

-- name: trim_attempts
DELETE FROM kizami_attempts
WHERE job_key = ?1 AND number <= (SELECT max(number) FROM kizami_attempts WHERE job_key = ?1) - 20

-- name: active_of_app
SELECT j.key, j.claim, j.state, j.shard_key, s.binding, s.shard, j.local_id, j.worker_id, j.boot_id,
  :boot - j.alive_until_boot AS silent_ms, j.alive_until_boot AS alive_until, j.timeout_ms, j.grace_ms,
  j.guarantee, j.attempt, j.attempts_allowed, j.started_at, j.concurrency_key
FROM kizami_shards AS s
CROSS JOIN kizami_jobs AS j INDEXED BY kizami_jobs_active ON j.shard_key = s.shard_key
WHERE s.app = :app AND j.state IN ('QUEUED', 'RUNNING')

-- name: take
UPDATE kizami_jobs
SET claim = claim + 1, state = :state, pile = :pile, worker_id = NULL, alive_until_boot = NULL, due_at = :now,
  retries = retries + :retry, error = :error, ended_at = :ended_at
WHERE key = :key AND claim = :claim AND state = :before AND alive_until_boot = :alive_until

-- name: skip_fire_by_lease
UPDATE kizami_fires SET outcome = 'skipped_lease', reason = :reason
WHERE app = :app AND schedule = :schedule AND planned_at = :scheduled_at AND kind <> 'manual' AND outcome = 'fired'

-- name: count_lease_skip
UPDATE kizami_schedules
SET fired_count = fired_count - 1, skipped_count = skipped_count + 1, skipped_at = :now
WHERE app = :app AND name = :schedule

-- name: name_of_shard
SELECT app, binding, shard FROM kizami_shards WHERE shard_key = :shard_key

-- name: held_identity
-- As by_identity; others wait until the end of this transaction: on SQLite they do anyway.
SELECT j.*, s.app, s.binding, s.shard, s.removed_until_at, b.policy, b.override
FROM kizami_shards AS s
JOIN kizami_bindings AS b ON b.app = s.app AND b.name = s.binding
JOIN kizami_jobs AS j ON j.shard_key = s.shard_key AND j.local_id = :local_id
WHERE s.app = :app AND s.binding = :binding AND s.shard = :shard

-- name: by_identity
SELECT j.*, s.app, s.binding, s.shard, s.removed_until_at, b.policy, b.override
FROM kizami_shards AS s
JOIN kizami_bindings AS b ON b.app = s.app AND b.name = s.binding
JOIN kizami_jobs AS j ON j.shard_key = s.shard_key AND j.local_id = :local_id
WHERE s.app = :app AND s.binding = :binding AND s.shard = :shard

-- name: removed_until
SELECT removed_until_at FROM kizami_shards WHERE app = :app AND binding = :binding AND shard = :shard

-- name: by_keys
SELECT j.*, s.app, s.binding, s.shard, b.policy, b.override
FROM json_each(:keys) AS w
CROSS JOIN kizami_jobs AS j ON j.key = w.value
CROSS JOIN kizami_shards AS s ON s.shard_key = j.shard_key
CROSS JOIN kizami_bindings AS b ON b.app = s.app AND b.name = s.binding

-- name: attempts
SELECT attempt, outcome, error, worker_id, started_at, ended_at FROM kizami_attempts WHERE job_key = :key ORDER BY number

-- name: retry
UPDATE kizami_jobs
SET state = 'SCHEDULED', pile = 'ready', rank = :rank, order_key = :order_key, due_at = :now,
  attempts_allowed = attempt + max_attempts, ended_at = NULL, retries = 0, snoozes = 0, progress = NULL,
  claim = claim + 1
WHERE key = :key AND state IN ('FAILED', 'STALLED')

-- name: cancel
UPDATE kizami_jobs SET state = 'CANCELLED', pile = NULL, ended_at = :now WHERE key = :key AND state = 'SCHEDULED'

-- name: reschedule
UPDATE kizami_jobs
SET pile = :pile, due_at = :due_at, first_due_at = :first_due_at, rank = :rank, order_key = :order_key
WHERE key = :key AND state = 'SCHEDULED'

-- name: counts
SELECT s.binding, c.state, sum(c.n) AS n
FROM kizami_shards AS s JOIN kizami_counts AS c ON c.shard_key = s.shard_key
WHERE s.app = :app GROUP BY s.binding, c.state HAVING sum(c.n) > 0

-- name: counts_of_shards
SELECT s.shard_key, coalesce(c.state, '') AS state, coalesce(sum(c.n), 0) AS n
FROM kizami_shards AS s LEFT JOIN kizami_counts AS c ON c.shard_key = s.shard_key
WHERE s.app = :app AND (:binding IS NULL OR s.binding = :binding) AND (:shard IS NULL OR s.shard = :shard)
GROUP BY s.shard_key, c.state

-- name: shards_of_app
SELECT s.shard_key, b.completed_ms, b.failed_ms
FROM kizami_shards AS s JOIN kizami_bindings AS b ON b.app = s.app AND b.name = s.binding
WHERE s.app = :app

-- name: sweep_done
DELETE FROM kizami_jobs
WHERE key IN (
  SELECT key FROM kizami_jobs INDEXED BY kizami_jobs_done
  WHERE shard_key = :shard_key AND state IN ('COMPLETED', 'CANCELLED') AND ended_at <= :before
  ORDER BY ended_at LIMIT :limit
)
RETURNING key, state

-- name: sweep_broken
DELETE FROM kizami_jobs
WHERE key IN (
  SELECT key FROM kizami_jobs INDEXED BY kizami_jobs_broken
  WHERE shard_key = :shard_key AND state IN ('FAILED', 'STALLED') AND ended_at <= :before
  ORDER BY ended_at LIMIT :limit
)
RETURNING key, state

-- name: note_removed
UPDATE kizami_shards SET removed_until_at = max(removed_until_at, :until_at) WHERE shard_key = :shard_key

-- name: sweep_reservations
DELETE FROM kizami_reservations
WHERE (shard_key, unique_key) IN (
  SELECT shard_key, unique_key FROM kizami_reservations INDEXED BY kizami_reservations_until
  WHERE until_at <= :now ORDER BY until_at LIMIT :limit
)

-- name: walk
-- Along one index of one shard; what stands in braces comes from the constants of the room.
SELECT {column}, key FROM kizami_jobs INDEXED BY {index} WHERE {where} ORDER BY {order} LIMIT :limit

-- name: count_walk
SELECT count(*) FROM (SELECT key FROM kizami_jobs INDEXED BY {index} WHERE {where} LIMIT :limit)
