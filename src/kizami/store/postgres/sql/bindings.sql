-- name: one
SELECT * FROM kizami_bindings WHERE app = :app AND name = :name

-- name: listed
SELECT * FROM kizami_bindings WHERE app = :app ORDER BY name

-- name: declare
INSERT INTO kizami_bindings (
  app, name, shards, requires_concurrency_key, requires_unique_key, payload_schema, policy, completed_ms, failed_ms,
  declared_at
)
VALUES (
  :app, :name, :shards, :requires_concurrency_key, :requires_unique_key, :payload_schema, :policy, :completed_ms,
  :failed_ms, :now
)
ON CONFLICT (app, name) DO UPDATE
SET shards = excluded.shards, requires_concurrency_key = excluded.requires_concurrency_key,
  requires_unique_key = excluded.requires_unique_key, payload_schema = excluded.payload_schema,
  policy = excluded.policy, completed_ms = excluded.completed_ms, failed_ms = excluded.failed_ms,
  declared_at = excluded.declared_at

-- name: add_shard
INSERT INTO kizami_shards (app, binding, shard) VALUES (:app, :name, :shard)
ON CONFLICT (app, binding, shard) DO NOTHING

-- name: shards
SELECT * FROM kizami_shards WHERE app = :app AND binding = :name ORDER BY shard

-- name: outstanding
SELECT coalesce(sum(c.n), 0)::bigint
FROM kizami_shards AS s JOIN kizami_counted AS c ON c.shard_key = s.shard_key
WHERE s.app = :app AND s.binding = :name AND c.state IN ('SCHEDULED', 'QUEUED', 'RUNNING')

-- name: reservations
SELECT r.*
FROM kizami_shards AS s JOIN kizami_reservations AS r ON r.shard_key = s.shard_key
WHERE s.app = :app AND s.binding = :name AND r.until_at > :now

-- name: forget_reservations
DELETE FROM kizami_reservations
WHERE shard_key IN (SELECT shard_key FROM kizami_shards WHERE app = :app AND binding = :name)

-- name: reserve_again
INSERT INTO kizami_reservations (shard_key, unique_key, job_shard_key, local_id, until_at)
VALUES (:shard_key, :unique_key, :job_shard_key, :local_id, :until_at)
ON CONFLICT (shard_key, unique_key) DO UPDATE
SET job_shard_key = excluded.job_shard_key, local_id = excluded.local_id, until_at = excluded.until_at
WHERE excluded.until_at > kizami_reservations.until_at

-- name: override
UPDATE kizami_bindings SET override = :override WHERE app = :app AND name = :name

-- name: pause
UPDATE kizami_bindings SET paused_at = coalesce(paused_at, :now) WHERE app = :app AND name = :name

-- name: resume
UPDATE kizami_bindings SET paused_at = NULL WHERE app = :app AND name = :name

-- name: rekey
UPDATE kizami_shards SET rekey_after = 0 WHERE app = :app AND binding = :name

-- name: piles
-- due: those of the waiting pile whose time has come, while no worker has promoted them.
SELECT s.*, b.policy, b.override, b.paused_at,
  (
    SELECT count(*) FROM kizami_jobs
    WHERE shard_key = s.shard_key AND pile = 'waiting' AND due_at <= :now
  ) AS due,
  coalesce(sum(c.n) FILTER (WHERE c.state IN ('QUEUED', 'RUNNING')), 0)::bigint AS active,
  coalesce(sum(c.n) FILTER (WHERE c.pile = 'waiting'), 0)::bigint AS waiting,
  coalesce(sum(c.n) FILTER (WHERE c.pile = 'ready'), 0)::bigint AS ready,
  coalesce(sum(c.n) FILTER (WHERE c.pile = 'blocked'), 0)::bigint AS blocked
FROM kizami_bindings AS b
JOIN kizami_shards AS s ON s.app = b.app AND s.binding = b.name
LEFT JOIN kizami_counted AS c ON c.shard_key = s.shard_key
WHERE b.app = :app
GROUP BY s.shard_key, b.app, b.name

-- name: first_ready
SELECT first_due_at FROM kizami_jobs
WHERE shard_key = :shard_key AND pile = 'ready' ORDER BY rank, order_key, key LIMIT 1

-- name: first_due
SELECT first_due_at FROM kizami_jobs
WHERE shard_key = :shard_key AND pile = 'waiting' AND due_at <= :now ORDER BY due_at LIMIT 1
