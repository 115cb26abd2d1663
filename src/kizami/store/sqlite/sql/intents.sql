-- name: record
INSERT INTO kizami_intents (app, kind, channel, item, attempt, attempted_at, slack_at)
VALUES (:app, :kind, :channel, :item, :attempt, :now, :slack_at)

-- name: unsettled
SELECT attempt, channel, attempted_at, slack_at FROM kizami_intents
WHERE app = :app AND kind = :kind AND channel = :channel AND item = :item AND settled_at IS NULL ORDER BY attempt

-- name: settle
UPDATE kizami_intents SET settled_at = :now, note = :note
WHERE app = :app AND kind = :kind AND channel = :channel AND item = :item AND attempt = :attempt AND settled_at IS NULL

-- name: settle_all
UPDATE kizami_intents SET settled_at = :now, note = :note
WHERE app = :app AND kind = :kind AND channel = :channel AND item = :item AND settled_at IS NULL
