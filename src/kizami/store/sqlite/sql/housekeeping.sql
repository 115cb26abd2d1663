-- name: schedules_after
SELECT name, coalesce(settled_at, 0) AS settled_at FROM kizami_schedules
WHERE app = :app AND name > :after ORDER BY name LIMIT :limit

-- Lines are numbered in the order of acting, so old ones and those beyond the number kept are a schedule's first ones.
-- The line of the last settled tick stays: of a batch's rows it is one at most, so it never keeps others from going.
-- name: sweep_fires
DELETE FROM kizami_fires
WHERE id IN (
  SELECT id FROM kizami_fires INDEXED BY kizami_fires_schedule
  WHERE app = :app AND schedule = :schedule ORDER BY id LIMIT :limit
)
  AND (acted_at <= :before OR id <= (
    SELECT id FROM kizami_fires INDEXED BY kizami_fires_schedule
    WHERE app = :app AND schedule = :schedule ORDER BY id DESC LIMIT 1 OFFSET :kept
  ))
  AND (kind = 'manual' OR planned_last_at < :settled_at)

-- name: channels
SELECT channel FROM kizami_delivery_counts WHERE app = :app AND state = 'delivered' AND n > 0 ORDER BY channel

-- The first ones that were added, as far as they are old enough: one that was delivered late is waited for, which needs
-- no index by the time of delivery.
-- name: sweep_delivered
DELETE FROM kizami_deliveries
WHERE seq IN (
  SELECT seq FROM kizami_deliveries INDEXED BY kizami_deliveries_in_state
  WHERE app = :app AND channel = :channel AND state = 'delivered' ORDER BY seq LIMIT :limit
)
  AND delivered_at <= :before
RETURNING item

-- name: forget_intents
DELETE FROM kizami_intents
WHERE app = :app AND kind = 'delivery' AND channel = :channel AND item IN (SELECT value FROM json_each(:items))

-- name: sweep_intents
DELETE FROM kizami_intents
WHERE (app, kind, channel, item, attempt) IN (
  SELECT app, kind, channel, item, attempt FROM kizami_intents INDEXED BY kizami_intents_settled
  WHERE app = :app AND settled_at <= :before ORDER BY settled_at LIMIT :limit
)

-- Silent by the boot clock too, where that still runs: a step of the wall clock buries nobody.
-- name: silent_workers
SELECT worker_id FROM kizami_workers
WHERE seen_at <= :now - :silent_ms AND (boot_id <> :boot_id OR seen_boot <= :boot - :silent_ms)
ORDER BY worker_id LIMIT :limit
