-- Keep shards from others until the end of the transaction, in one order for all; then fold their deltas when there are
-- many. What is asked after this sees all that earlier holders did.
CREATE FUNCTION kizami_hold_shards(shard_keys bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM kizami_shards WHERE shard_key = ANY (shard_keys) ORDER BY shard_key FOR NO KEY UPDATE;
  IF (SELECT count(*) FROM (
    SELECT 1 FROM kizami_count_deltas WHERE shard_key = ANY (shard_keys) LIMIT 200
  ) AS many) = 200 THEN
    WITH gone AS (
      DELETE FROM kizami_count_deltas WHERE shard_key = ANY (shard_keys) RETURNING shard_key, state, pile, n
    )
    INSERT INTO kizami_counts AS c (shard_key, state, pile, n)
    SELECT shard_key, state, pile, sum(n) FROM gone GROUP BY shard_key, state, pile
    ON CONFLICT (shard_key, state, pile) DO UPDATE SET n = c.n + excluded.n;
  END IF;
  RETURN shard_keys;
END
$$;

CREATE TYPE kizami_shard_with_work AS (
  shard_key          bigint,
  app                text,
  binding            text,
  shard              bigint,
  bucket_tokens      bigint,
  bucket_interval_ms bigint,
  bucket_level       bigint,
  bucket_at          bigint,
  bucket_clock_id    text,
  rekey_after        bigint,
  policy             text,
  override           text,
  paused_at          bigint,
  ready              bigint,
  active             bigint,
  next_due_at        bigint
);

-- The shards of some bindings that have unstarted jobs or a policy to be worked in. With `hold`, claims take turns: only
-- the shards with something to claim, each kept from others, are then looked at, since what a statement sees was
-- committed before it began.
CREATE FUNCTION kizami_shards_with_work(wanted_app text, wanted_bindings text, hold boolean)
RETURNS SETOF kizami_shard_with_work LANGUAGE plpgsql AS $$
DECLARE
  present CONSTANT bigint := kizami_now();
  held bigint[];
BEGIN
  IF hold THEN
    held := ARRAY(
      SELECT s.shard_key FROM kizami_shards AS s
      WHERE s.app = wanted_app AND s.binding IN (SELECT value FROM json_array_elements_text(wanted_bindings::json))
        AND (
          s.rekey_after IS NOT NULL
          OR EXISTS (SELECT 1 FROM kizami_jobs AS j WHERE j.shard_key = s.shard_key AND j.pile = 'ready')
          OR EXISTS (
            SELECT 1 FROM kizami_jobs AS j
            WHERE j.shard_key = s.shard_key AND j.pile = 'waiting' AND j.due_at <= present
          )
        )
    );
    IF cardinality(held) = 0 THEN
      RETURN;
    END IF;
    held := kizami_hold_shards(held);
  END IF;
  RETURN QUERY
  SELECT s.shard_key, s.app::text, s.binding::text, s.shard, s.bucket_tokens, s.bucket_interval_ms, s.bucket_level,
    s.bucket_at, s.bucket_clock_id::text, s.rekey_after, b.policy::text, b.override::text, b.paused_at, c.ready,
    c.active, (
      SELECT j.due_at FROM kizami_jobs AS j
      WHERE j.shard_key = s.shard_key AND j.pile = 'waiting' ORDER BY j.due_at LIMIT 1
    )
  FROM json_array_elements_text(wanted_bindings::json) AS w (name)
  JOIN kizami_bindings AS b ON b.app = wanted_app AND b.name = w.name
  JOIN kizami_shards AS s ON s.app = b.app AND s.binding = b.name
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(n) FILTER (WHERE pile = 'ready'), 0)::bigint AS ready,
      coalesce(sum(n) FILTER (WHERE state IN ('QUEUED', 'RUNNING')), 0)::bigint AS active,
      coalesce(sum(n) FILTER (WHERE state = 'SCHEDULED'), 0)::bigint AS unstarted
    FROM kizami_counted WHERE kizami_counted.shard_key = s.shard_key
  ) AS c
  WHERE (s.rekey_after IS NOT NULL OR c.unstarted > 0) AND (held IS NULL OR s.shard_key = ANY (held));
END
$$;
