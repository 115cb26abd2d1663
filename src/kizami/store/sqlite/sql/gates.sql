-- An earlier closing that lasts longer stays. How long it lasts is told as in `closed`.
-- name: close
INSERT INTO kizami_gates (app, method, channel, closed_at, until_at, until_boot, boot_id, reason)
VALUES (:app, :method, :channel, :now, :now + :for_ms, :boot + :for_ms, :boot_id, :reason)
ON CONFLICT (app, method, channel) DO UPDATE SET
  closed_at = excluded.closed_at, until_at = excluded.until_at, until_boot = excluded.until_boot,
  boot_id = excluded.boot_id, reason = excluded.reason
WHERE :for_ms > iif(
  kizami_gates.boot_id = :boot_id, kizami_gates.until_boot - :boot,
  min(kizami_gates.until_at - :now, kizami_gates.until_at - kizami_gates.closed_at)
)

-- A gate outlives a reboot (Slack doesn't know of it): then the wall clock counts, and no step back of it may keep the
-- gate closed for longer than it was closed for.
-- name: closed
SELECT method, channel, remaining_ms, reason FROM (
  SELECT method, channel, reason, iif(
    boot_id = :boot_id, until_boot - :boot, min(until_at - :now, until_at - closed_at)
  ) AS remaining_ms
  FROM kizami_gates WHERE app = :app
) WHERE remaining_ms > 0 ORDER BY method, channel
