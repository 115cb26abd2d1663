-- name: schedules_after
SELECT name, coalesce(settled_at, 0) AS settled_at FROM kizami_schedules
WHERE app = :app AND name > :after ORDER BY name LIMIT :limit

-- Lines are numbered in the order of acting, so old ones and those beyond the number kept are a schedule's first ones.
-- The line of the last settled tick stays: of a batch's rows it is one at most, so it never keeps others from going.
-- Written as ranges, since only the index by schedule has their order: by another one all lines might be read.
-- name: sweep_fires
DELETE FROM kizami_fires
WHERE id = ANY (ARRAY(
  SELECT id FROM kizami_fires
  WHERE app = :app AND schedule >= :schedule AND schedule <= :schedule ORDER BY schedule, id LIMIT :limit
))
  AND (acted_at <= :before OR id <= (
    SELECT id FROM kizami_fires
    WHERE app = :app AND schedule >= :schedule AND schedule <= :schedule
    ORDER BY schedule DESC, id DESC LIMIT 1 OFFSET :kept
  ))
  AND (kind = 'manual' OR planned_last_at < :settled_at)

-- name: channels
SELECT channel FROM kizami_delivery_counts WHERE app = :app AND state = 'delivered' AND n > 0 ORDER BY channel

-- The first ones that were added, as far as they are old enough: one that was delivered late is waited for, which needs
-- no index by the time of delivery. Looked at once more under the lock: another table may owe an item again.
-- name: sweep_delivered
DELETE FROM kizami_deliveries
WHERE seq = ANY (ARRAY(
  SELECT seq FROM kizami_deliveries
  WHERE app = :app AND channel >= :channel AND channel <= :channel AND state = 'delivered'
  ORDER BY channel, seq LIMIT :limit
))
  AND delivered_at <= :before
RETURNING item

-- name: forget_intents
DELETE FROM kizami_intents
WHERE app = :app AND kind = 'delivery' AND channel = :channel
  AND item = ANY (ARRAY(SELECT json_array_elements_text(:items::json)))

-- name: sweep_intents
DELETE FROM kizami_intents
WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM kizami_intents
  WHERE app = :app AND settled_at <= :before ORDER BY app, settled_at LIMIT :limit FOR UPDATE SKIP LOCKED
))

-- name: silent_workers
SELECT worker_id FROM kizami_workers
WHERE seen_at <= :now - :silent_ms::bigint
ORDER BY worker_id LIMIT :limit FOR UPDATE SKIP LOCKED
