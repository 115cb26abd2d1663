-- name: insert_alone
-- A whole enqueue of one job in one statement, and so in one way to the database and back: nothing happens unless its
-- binding still is what the caller remembers (its stamp), and no job of its identity is there.
WITH added AS (
  INSERT INTO kizami_jobs (
    key, shard_key, local_id, state, pile, priority, rank, order_key, due_at, first_due_at, concurrency_key,
    partition_key, attempts_allowed, max_attempts, guarantee, timeout_ms, backoff, payload
  )
  SELECT (now << 20) | (nextval('kizami_job_numbers') & 1048575), :shard_key, :local_id, 'SCHEDULED',
    CASE WHEN due_at <= now THEN 'ready' ELSE 'waiting' END, :priority, :rank, greatest(due_at, now) - :lead_ms, due_at,
    greatest(due_at, now), :concurrency_key, :partition_key, :max_attempts, :max_attempts, :guarantee, :timeout_ms,
    :backoff, :payload
  FROM (
    SELECT now, coalesce(:run_at_ms, now + :delay_ms) AS due_at FROM (SELECT kizami_now() AS now OFFSET 0) AS clock
    OFFSET 0
  ) AS moment
  WHERE EXISTS (SELECT 1 FROM kizami_bindings WHERE app = :app AND name = :name AND xmin = :stamp::xid)
  ON CONFLICT (shard_key, local_id) DO NOTHING
  RETURNING shard_key, pile
), counted AS (
  INSERT INTO kizami_count_deltas (shard_key, state, pile, n) SELECT shard_key, 'SCHEDULED', pile, 1 FROM added
)
SELECT shard_key FROM added
