-- Where rows are found by their keys, `|| ''` keeps a condition from being taken for an index of all rows that meet it.
-- `ARRAY(...)` runs a subquery once; behind IN, one with a LIMIT may run anew for every row.

-- name: home
-- A binding's stored facts, for whoever enqueues; with the number of each of its shards. The stamp changes with the row.
SELECT b.*, b.xmin::text AS stamp, s.shard, s.shard_key
FROM kizami_bindings AS b JOIN kizami_shards AS s ON s.app = b.app AND s.binding = b.name
WHERE b.app = :app AND b.name = :name

-- name: take_keys
-- Keys for `count` new jobs, in ranges from first to last: the instant, and a number of the sequence's last 20 bits. When
-- these start again at 0 in the middle of a call, the instant counts on, so that its keys grow. It is sent before the
-- transaction's own instant is known.
SELECT key AS first, key AS last FROM (
  SELECT (((SELECT kizami_now()) + (number >> 20) - (min(number) OVER () >> 20)) << 20) | (number & 1048575) AS key
  FROM (SELECT nextval('kizami_job_numbers') AS number FROM generate_series(1, :count)) AS numbers
) AS keys ORDER BY key

-- name: insert
-- In one order for all calls: of two with the same jobs, one waits for the other and not each for the other.
INSERT INTO kizami_jobs (
  key, shard_key, local_id, state, pile, priority, rank, order_key, due_at, first_due_at, concurrency_key, unique_key,
  partition_key, attempts_allowed, max_attempts, guarantee, timeout_ms, backoff, schedule, scheduled_at, manual, lease,
  payload
)
SELECT c1, c2, c3, 'SCHEDULED', c4, c5, c6, c7, c8, c9, nullif(c10, ''), nullif(c11, ''), nullif(c12, ''), c13, c13, c14,
  c15, nullif(c16, ''), nullif(c17, ''), nullif(c18, 0), c19, nullif(c20, ''), c21
FROM unnest(
  :c1::bigint[], :c2::bigint[], :c3::text[], :c4::text[], :c5::bigint[], :c6::bigint[], :c7::bigint[], :c8::bigint[],
  :c9::bigint[], :c10::text[], :c11::text[], :c12::text[], :c13::bigint[], :c14::text[], :c15::bigint[], :c16::text[],
  :c17::text[], :c18::bigint[], :c19::bigint[], :c20::text[], :c21::text[]
) AS r (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21)
ORDER BY c2, c3, c1
ON CONFLICT (shard_key, local_id) DO NOTHING

-- name: not_inserted
SELECT value::bigint FROM json_array_elements_text(:keys::json) AS w (value)
WHERE NOT EXISTS (SELECT 1 FROM kizami_jobs WHERE key = value::bigint)

-- name: state_of
SELECT state FROM kizami_jobs WHERE shard_key = :shard_key AND local_id = :local_id

-- name: reserve
INSERT INTO kizami_reservations (shard_key, unique_key, job_shard_key, local_id, until_at)
VALUES (:shard_key, :unique_key, :shard_key, :local_id, :until_at)
ON CONFLICT (shard_key, unique_key) DO UPDATE
SET job_shard_key = excluded.job_shard_key, local_id = excluded.local_id, until_at = excluded.until_at
WHERE kizami_reservations.until_at <= :now
RETURNING local_id

-- name: reserved
SELECT r.local_id, r.job_shard_key, s.shard
FROM kizami_reservations AS r JOIN kizami_shards AS s ON s.shard_key = r.job_shard_key
WHERE r.shard_key = :shard_key AND r.unique_key = :unique_key

-- name: count
-- Appended, so that no two transactions wait for each other over a number; kizami_hold_shards folds them.
INSERT INTO kizami_count_deltas (shard_key, state, pile, n)
SELECT c1, c2, c3, c4 FROM unnest(:c1::bigint[], :c2::text[], :c3::text[], :c4::bigint[]) AS r (c1, c2, c3, c4)

-- name: promote
UPDATE kizami_jobs SET pile = 'ready'
WHERE key = ANY (ARRAY(
  SELECT key FROM kizami_jobs
  WHERE shard_key = :shard_key AND pile = 'waiting' AND due_at <= :now ORDER BY due_at LIMIT :limit
))

-- name: hold_shards
-- For those who free places of keys.
SELECT kizami_hold_shards(ARRAY(SELECT value::bigint FROM json_array_elements_text(:shard_keys::json) AS w (value)))

-- name: shards_with_work
-- The shards of the wanted bindings that have unstarted jobs or a policy to be worked in; with `hold` only those that have
-- something to claim, and kept from other claims.
SELECT * FROM kizami_shards_with_work(:app, :bindings, :hold <> 0)

-- name: ready_of_shard
SELECT rank, order_key, key, concurrency_key FROM kizami_jobs
WHERE shard_key = :shard_key AND pile = 'ready' ORDER BY rank, order_key, key LIMIT :limit

-- name: active_by_key
SELECT w.value AS concurrency_key, (
  SELECT count(*) FROM kizami_jobs
  WHERE shard_key = :shard_key AND concurrency_key = w.value AND state IN ('QUEUED', 'RUNNING')
) AS active
FROM json_array_elements_text(:keys::json) AS w (value)

-- name: claim
UPDATE kizami_jobs
SET state = 'QUEUED', pile = NULL, claim = claim + 1, attempt = attempt + 1, worker_id = :worker_id,
  alive_until_at = :now + timeout_ms + :grace_ms, grace_ms = :grace_ms, started_at = :now,
  ended_at = NULL, progress = NULL
WHERE key = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:keys::json))) AND pile || '' = 'ready'
RETURNING key, claim, shard_key, local_id, payload, attempt, attempts_allowed, retries, snoozes, priority, max_attempts,
  backoff, timeout_ms, guarantee, concurrency_key, unique_key, partition_key, schedule, scheduled_at, manual, lease

-- name: block
UPDATE kizami_jobs SET pile = 'blocked'
WHERE key = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:keys::json))) AND pile || '' = 'ready'
RETURNING shard_key

-- name: unblock
-- The first blocked job of a key comes back when a holder's place is free.
UPDATE kizami_jobs SET pile = 'ready'
WHERE key = (
  SELECT key FROM kizami_jobs
  WHERE shard_key = :shard_key AND concurrency_key = :concurrency_key AND pile = 'blocked'
  ORDER BY rank, order_key, key LIMIT 1
)

-- name: any_blocked
SELECT 1 FROM kizami_jobs WHERE shard_key = :shard_key AND pile = 'blocked' LIMIT 1

-- name: write_bucket
UPDATE kizami_shards
SET bucket_tokens = :tokens, bucket_interval_ms = :interval_ms, bucket_level = :level, bucket_at = :at,
  bucket_clock_id = :clock_id
WHERE shard_key = :shard_key

-- name: to_rekey
SELECT key, state, pile, priority, first_due_at FROM kizami_jobs
WHERE shard_key = :shard_key AND key > :after ORDER BY key LIMIT :limit

-- name: rekey
UPDATE kizami_jobs
SET rank = r.c1, order_key = r.c2, pile = CASE pile WHEN 'blocked' THEN 'ready' ELSE pile END
FROM unnest(:c1::bigint[], :c2::bigint[], :c3::bigint[]) AS r (c1, c2, c3)
WHERE kizami_jobs.key = r.c3

-- name: move_rekey_cursor
UPDATE kizami_shards SET rekey_after = :after WHERE shard_key = :shard_key

-- name: start
UPDATE kizami_jobs
SET state = 'RUNNING', started_at = :now
WHERE key = :key AND claim = :claim AND state = 'QUEUED'
RETURNING shard_key

-- name: alive
-- beats: a list of [key, claim, alive_ms, progress].
UPDATE kizami_jobs AS j
SET alive_until_at = greatest(j.alive_until_at, :now + (b.value ->> 2)::bigint),
  progress = coalesce((b.value ->> 3)::double precision, j.progress)
FROM json_array_elements(:beats::json) AS b (value)
WHERE j.key = ANY (ARRAY(SELECT (value ->> 0)::bigint FROM json_array_elements(:beats::json)))
  AND j.key = (b.value ->> 0)::bigint AND j.claim = (b.value ->> 1)::bigint AND j.state || '' IN ('QUEUED', 'RUNNING')
RETURNING j.key, j.claim

-- name: held
SELECT key, claim, state, shard_key, local_id, worker_id, attempt, snoozes, concurrency_key, schedule, scheduled_at,
  manual, lease
FROM kizami_jobs WHERE key = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:keys::json)))
ORDER BY key FOR UPDATE

-- name: end
UPDATE kizami_jobs AS j
SET state = r.c1, worker_id = NULL, alive_until_at = NULL, ended_at = r.c2, result = nullif(r.c3, ''),
  result_note = nullif(r.c4, ''), error = nullif(r.c5, ''), progress = coalesce(r.c6, j.progress)
FROM unnest(
  :c1::text[], :c2::bigint[], :c3::text[], :c4::text[], :c5::text[], :c6::double precision[], :c7::bigint[],
  :c8::bigint[]
) AS r (c1, c2, c3, c4, c5, c6, c7, c8)
WHERE j.key = r.c7 AND j.claim = r.c8 AND j.state || '' IN ('QUEUED', 'RUNNING')

-- name: complete_first_try
-- The commonest end, without what only other ends write; whoever doesn't fit is looked at one by one.
UPDATE kizami_jobs AS j
SET state = 'COMPLETED', worker_id = NULL, alive_until_at = NULL, ended_at = r.c1, result = nullif(r.c2, ''),
  result_note = nullif(r.c3, ''), progress = 1.0
FROM unnest(:c1::bigint[], :c2::text[], :c3::text[], :c4::bigint[]) AS r (c1, c2, c3, c4)
WHERE j.key = r.c4 AND j.claim = 1 AND j.state || '' = 'QUEUED'

-- name: again
UPDATE kizami_jobs AS j
SET state = 'SCHEDULED', pile = r.c1, worker_id = NULL, alive_until_at = NULL, due_at = r.c2,
  attempt = j.attempt - r.c3, retries = j.retries + r.c4, snoozes = r.c5, error = coalesce(r.c6, j.error)
FROM unnest(
  :c1::text[], :c2::bigint[], :c3::bigint[], :c4::bigint[], :c5::bigint[], :c6::text[], :c7::bigint[], :c8::bigint[]
) AS r (c1, c2, c3, c4, c5, c6, c7, c8)
WHERE j.key = r.c7 AND j.claim = r.c8 AND j.state || '' IN ('QUEUED', 'RUNNING')

-- name: landed_already
-- Only a first-try success leaves no line in the log; COMPLETED is final, so its claim is still the job's.
SELECT 1 FROM kizami_attempts
WHERE job_key = :key AND claim = :claim AND outcome = :outcome AND started_at = :started_at AND ended_at = :ended_at
UNION ALL
SELECT 1 FROM kizami_jobs
WHERE key = :key AND claim = :claim AND state = 'COMPLETED' AND :state = 'COMPLETED' AND result IS NOT DISTINCT FROM :result

-- name: log_attempt
INSERT INTO kizami_attempts (job_key, number, attempt, claim, outcome, error, worker_id, started_at, ended_at)
SELECT c1, 1 + coalesce((SELECT max(number) FROM kizami_attempts WHERE job_key = c1), 0), c2, c3, c4, c5, c6, c7, c8
FROM unnest(
  :c1::bigint[], :c2::bigint[], :c3::bigint[], :c4::text[], :c5::text[], :c6::text[], :c7::bigint[], :c8::bigint[]
) AS r (c1, c2, c3, c4, c5, c6, c7, c8)

-- name: trim_attempts
DELETE FROM kizami_attempts AS a
USING unnest(:c1::bigint[]) AS r (c1)
WHERE a.job_key = r.c1 AND a.number <= (SELECT max(number) FROM kizami_attempts WHERE job_key = r.c1) - 20

-- name: active_of_app
SELECT j.key, j.claim, j.state, j.shard_key, s.binding, s.shard, j.local_id, j.worker_id, '' AS boot_id,
  :now - j.alive_until_at AS silent_ms, j.alive_until_at AS alive_until, j.timeout_ms, j.grace_ms, j.guarantee,
  j.attempt, j.attempts_allowed, j.started_at, j.concurrency_key
FROM kizami_shards AS s
JOIN kizami_jobs AS j ON j.shard_key = s.shard_key
WHERE s.app = :app AND j.state IN ('QUEUED', 'RUNNING')

-- name: take
UPDATE kizami_jobs
SET claim = claim + 1, state = :state, pile = :pile, worker_id = NULL, alive_until_at = NULL, due_at = :now,
  retries = retries + :retry, error = :error, ended_at = :ended_at
WHERE key = :key AND claim = :claim AND state = :before AND alive_until_at = :alive_until

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
-- As by_identity, with the shard and the job kept from others until the end of this transaction.
SELECT j.*, s.app, s.binding, s.shard, s.removed_until_at, b.policy, b.override
FROM kizami_shards AS s
JOIN kizami_bindings AS b ON b.app = s.app AND b.name = s.binding
JOIN kizami_jobs AS j ON j.shard_key = s.shard_key AND j.local_id = :local_id
WHERE s.app = :app AND s.binding = :binding AND s.shard = :shard
FOR NO KEY UPDATE OF s, j

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
FROM json_array_elements_text(:keys::json) WITH ORDINALITY AS w (value, place)
JOIN kizami_jobs AS j ON j.key = w.value::bigint
JOIN kizami_shards AS s ON s.shard_key = j.shard_key
JOIN kizami_bindings AS b ON b.app = s.app AND b.name = s.binding
ORDER BY w.place

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
SELECT s.binding, c.state, sum(c.n)::bigint AS n
FROM kizami_shards AS s JOIN kizami_counted AS c ON c.shard_key = s.shard_key
WHERE s.app = :app GROUP BY s.binding, c.state HAVING sum(c.n) > 0

-- name: counts_of_shards
SELECT s.shard_key, coalesce(c.state, '') AS state, coalesce(sum(c.n), 0)::bigint AS n
FROM kizami_shards AS s LEFT JOIN kizami_counted AS c ON c.shard_key = s.shard_key
WHERE s.app = :app AND (:binding::text IS NULL OR s.binding = :binding)
  AND (:shard::bigint IS NULL OR s.shard = :shard)
GROUP BY s.shard_key, c.state

-- name: shards_of_app
SELECT s.shard_key, b.completed_ms, b.failed_ms
FROM kizami_shards AS s JOIN kizami_bindings AS b ON b.app = s.app AND b.name = s.binding
WHERE s.app = :app

-- name: sweep_done
DELETE FROM kizami_jobs
WHERE key = ANY (ARRAY(
  SELECT key FROM kizami_jobs
  WHERE shard_key = :shard_key AND state IN ('COMPLETED', 'CANCELLED') AND ended_at <= :before
  ORDER BY ended_at LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING key, state

-- name: sweep_broken
DELETE FROM kizami_jobs
WHERE key = ANY (ARRAY(
  SELECT key FROM kizami_jobs
  WHERE shard_key = :shard_key AND state IN ('FAILED', 'STALLED') AND ended_at <= :before
  ORDER BY ended_at LIMIT :limit FOR UPDATE SKIP LOCKED
))
RETURNING key, state

-- name: note_removed
UPDATE kizami_shards SET removed_until_at = greatest(removed_until_at, :until_at) WHERE shard_key = :shard_key

-- name: sweep_reservations
DELETE FROM kizami_reservations
WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM kizami_reservations WHERE until_at <= :now ORDER BY until_at LIMIT :limit FOR UPDATE SKIP LOCKED
))

-- name: walk
-- Along one index of one shard; what stands in braces comes from the constants of the room.
SELECT {column}, key FROM kizami_jobs WHERE {where} ORDER BY {order} LIMIT :limit

-- name: count_walk
SELECT count(*) FROM (SELECT key FROM kizami_jobs WHERE {where} LIMIT :limit) AS walked
