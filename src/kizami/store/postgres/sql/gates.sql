-- An earlier closing that lasts longer stays.
-- name: close
INSERT INTO kizami_gates (app, method, channel, closed_at, until_at, reason)
VALUES (:app, :method, :channel, :now, :now + :for_ms, :reason)
ON CONFLICT (app, method, channel) DO UPDATE SET
  closed_at = excluded.closed_at, until_at = excluded.until_at, reason = excluded.reason
WHERE :for_ms > least(kizami_gates.until_at - :now, kizami_gates.until_at - kizami_gates.closed_at)

-- No step back of the database's clock may keep a gate closed for longer than it was closed for.
-- name: closed
SELECT method, channel, remaining_ms, reason FROM (
  SELECT method, channel, reason, least(until_at - :now, until_at - closed_at) AS remaining_ms
  FROM kizami_gates WHERE app = :app
) AS gates WHERE remaining_ms > 0 ORDER BY method, channel
