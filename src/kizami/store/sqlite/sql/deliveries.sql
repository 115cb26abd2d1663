-- Every fenced write carries the same condition: no lease asked for, or this run still holds it.

-- name: fence_holds
SELECT :lease IS NULL OR EXISTS (
  SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
)

-- name: add
INSERT INTO kizami_deliveries (app, channel, item, content, due, created_at)
SELECT :app, value ->> 'channel', value ->> 'item', value ->> 'content', value ->> 'due', :now
FROM json_each(:items)
WHERE :lease IS NULL OR EXISTS (
  SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
)
ORDER BY key
ON CONFLICT (app, channel, item) DO NOTHING
RETURNING channel, item

-- name: owed
SELECT d.item, d.due, d.seq, (
  SELECT min(i.attempted_at) FROM kizami_intents AS i
  WHERE i.app = d.app AND i.kind = 'delivery' AND i.channel = d.channel AND i.item = d.item AND i.settled_at IS NULL
) AS in_doubt_since, (
  SELECT min(i.slack_at) FROM kizami_intents AS i
  WHERE i.app = d.app AND i.kind = 'delivery' AND i.channel = d.channel AND i.item = d.item AND i.settled_at IS NULL
) AS slack_since
FROM kizami_deliveries AS d
WHERE d.app = :app AND d.channel = :channel AND d.delivered_at IS NULL AND d.set_aside_at IS NULL
  AND d.due <= :until AND (d.due, d.seq) > (:after_due, :after_seq)
  AND (d.claim_token IS NULL OR d.claim_boot_id <> :boot_id OR d.claim_expires_boot <= :boot)
ORDER BY d.due, d.seq LIMIT :limit

-- name: set_aside_old
UPDATE kizami_deliveries SET set_aside_at = :now, note = :note
WHERE app = :app AND channel = :channel AND delivered_at IS NULL AND set_aside_at IS NULL AND due < :due_before
  AND (claim_token IS NULL OR claim_boot_id <> :boot_id OR claim_expires_boot <= :boot)
  AND (:lease IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  ))

-- name: claim
UPDATE kizami_deliveries
SET claim_token = :token, claim_worker = :worker_id, claim_expires_boot = :boot + :expires_ms, claim_boot_id = :boot_id
WHERE app = :app AND channel = :channel AND item = :item AND delivered_at IS NULL AND set_aside_at IS NULL
  AND (claim_token IS NULL OR claim_token = :token OR claim_boot_id <> :boot_id OR claim_expires_boot <= :boot)
  AND (:lease IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  ))
RETURNING content, attempts

-- The other table decides what is owed, so whatever this row says of an earlier delivery gives way.
-- name: claim_owed_elsewhere
INSERT INTO kizami_deliveries AS d
  (app, channel, item, content, due, created_at, claim_token, claim_worker, claim_expires_boot, claim_boot_id)
SELECT :app, :channel, :item, :content, :due, :now, :token, :worker_id, :boot + :expires_ms, :boot_id
WHERE :lease IS NULL OR EXISTS (
  SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
)
ON CONFLICT (app, channel, item) DO UPDATE
SET content = excluded.content, due = excluded.due,
    delivered_at = NULL, posted_channel = NULL, ts = NULL, set_aside_at = NULL,
    note = iif(d.delivered_at IS NULL AND d.set_aside_at IS NULL, d.note, NULL),
    claim_token = excluded.claim_token, claim_worker = excluded.claim_worker,
    claim_expires_boot = excluded.claim_expires_boot, claim_boot_id = excluded.claim_boot_id
WHERE (d.claim_token IS NULL OR d.claim_token = :token OR d.claim_boot_id <> :boot_id OR d.claim_expires_boot <= :boot)
  AND (d.set_aside_at IS NULL OR :retry_refused OR d.content <> excluded.content OR d.due <> excluded.due)
RETURNING content, attempts

-- The claim starts anew here, so that it outlasts the call that follows however long the look-up took.
-- name: intend
UPDATE kizami_deliveries
SET attempts = attempts + 1, claim_expires_boot = :boot + :expires_ms, claim_boot_id = :boot_id
WHERE app = :app AND channel = :channel AND item = :item AND claim_token = :token AND delivered_at IS NULL
  AND (:lease IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  ))
RETURNING attempts

-- name: mark
UPDATE kizami_deliveries
SET delivered_at = :now, posted_channel = :posted_channel, ts = :ts, note = :note,
    claim_token = NULL, claim_worker = NULL, claim_expires_boot = NULL, claim_boot_id = NULL
WHERE app = :app AND channel = :channel AND item = :item AND claim_token = :token AND delivered_at IS NULL
  AND (:lease IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  ))

-- name: is_marked
SELECT 1 FROM kizami_deliveries
WHERE app = :app AND channel = :channel AND item = :item AND posted_channel = :posted_channel AND ts = :ts

-- name: hand_back
UPDATE kizami_deliveries
SET note = coalesce(:note, note), set_aside_at = iif(:set_aside, :now, set_aside_at),
    claim_token = NULL, claim_worker = NULL, claim_expires_boot = NULL, claim_boot_id = NULL
WHERE app = :app AND channel = :channel AND item = :item AND claim_token = :token AND delivered_at IS NULL

-- name: is_claimed
SELECT 1 FROM kizami_deliveries WHERE app = :app AND channel = :channel AND item = :item AND claim_token = :token

-- name: known
SELECT d.app, d.channel, d.item, d.content, d.due, d.created_at, d.delivered_at, d.posted_channel, d.ts, d.attempts,
  iif(d.delivered_at IS NULL, (
    SELECT min(i.attempted_at) FROM kizami_intents AS i
    WHERE i.app = d.app AND i.kind = 'delivery' AND i.channel = d.channel AND i.item = d.item AND i.settled_at IS NULL
  ), NULL) AS in_doubt_since,
  d.set_aside_at, d.note, d.possible_duplicates
FROM kizami_deliveries AS d
WHERE d.app = :app AND d.channel = :channel AND d.item IN (SELECT value FROM json_each(:items))

-- name: count_possible_duplicate
UPDATE kizami_deliveries SET possible_duplicates = possible_duplicates + 1, note = :note
WHERE app = :app AND channel = :channel AND item = :item

-- Due is moved forward, or what was set aside for its age would be so again at once; the note keeps the old date.
-- name: requeue
UPDATE kizami_deliveries
SET set_aside_at = NULL, due = max(due, :today_everywhere),
    note = 'requeued, was due ' || due || iif(note IS NULL, '', ': ' || note)
WHERE app = :app AND channel = :channel AND (:item IS NULL OR item = :item) AND state = 'set_aside'

-- name: is_there
SELECT 1 FROM kizami_deliveries WHERE app = :app AND channel = :channel AND (:item IS NULL OR item = :item)

-- name: free_of
UPDATE kizami_deliveries
SET claim_token = NULL, claim_worker = NULL, claim_expires_boot = NULL, claim_boot_id = NULL
WHERE claim_worker = :worker_id

-- Each list walks the index of its filter from its end, and stops when the page is full.
-- name: list
SELECT d.app, d.channel, d.item, d.content, d.due, d.created_at, d.delivered_at, d.posted_channel, d.ts, d.attempts,
  iif(d.delivered_at IS NULL, (
    SELECT min(i.attempted_at) FROM kizami_intents AS i
    WHERE i.app = d.app AND i.kind = 'delivery' AND i.channel = d.channel AND i.item = d.item AND i.settled_at IS NULL
  ), NULL) AS in_doubt_since,
  d.set_aside_at, d.note, d.possible_duplicates
FROM kizami_deliveries AS d
WHERE d.app = :app{where}
ORDER BY d.seq DESC LIMIT :limit

-- What is in doubt is found by its intents: there are few of those, and many deliveries.
-- name: list_in_doubt
SELECT d.app, d.channel, d.item, d.content, d.due, d.created_at, d.delivered_at, d.posted_channel, d.ts, d.attempts,
  iif(d.delivered_at IS NULL, (
    SELECT min(i.attempted_at) FROM kizami_intents AS i
    WHERE i.app = d.app AND i.kind = 'delivery' AND i.channel = d.channel AND i.item = d.item AND i.settled_at IS NULL
  ), NULL) AS in_doubt_since,
  d.set_aside_at, d.note, d.possible_duplicates
FROM (
  SELECT DISTINCT channel, item FROM kizami_intents WHERE app = :app AND kind = 'delivery'{where} AND settled_at IS NULL
) AS u
CROSS JOIN kizami_deliveries AS d ON d.app = :app AND d.channel = u.channel AND d.item = u.item
WHERE d.state = 'owed'
ORDER BY d.seq DESC LIMIT :limit

-- name: counts
SELECT channel, state, n FROM kizami_delivery_counts WHERE app = :app ORDER BY channel

-- name: counts_in_doubt
SELECT u.channel, count(*) AS n
FROM (
  SELECT DISTINCT channel, item FROM kizami_intents WHERE app = :app AND kind = 'delivery' AND settled_at IS NULL
) AS u
CROSS JOIN kizami_deliveries AS d ON d.app = :app AND d.channel = u.channel AND d.item = u.item
WHERE d.state = 'owed'
GROUP BY u.channel
