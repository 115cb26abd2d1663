-- A name in another channel is another board: one that moves starts there anew and leaves its old message behind, and two
-- publishers that disagree about the channel have a message each instead of taking the board from one another for ever.
-- name: claim
INSERT INTO kizami_boards (app, name, channel, claim_token, claim_worker, claim_expires_boot, claim_boot_id)
SELECT :app, :item, :channel, :token, :worker_id, :boot + :expires_ms, :boot_id
WHERE :lease IS NULL OR EXISTS (
  SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
)
ON CONFLICT (app, name, channel) DO UPDATE SET
  claim_token = excluded.claim_token, claim_worker = excluded.claim_worker,
  claim_expires_boot = excluded.claim_expires_boot, claim_boot_id = excluded.claim_boot_id
WHERE kizami_boards.claim_token IS NULL
   OR kizami_boards.claim_token = excluded.claim_token
   OR kizami_boards.claim_boot_id <> excluded.claim_boot_id
   OR kizami_boards.claim_expires_boot <= :boot

-- name: list
SELECT b.app, b.name, b.channel, b.posted_channel, b.ts, b.synced_at, b.content_hash, b.posted_at, b.edited_at,
  b.posts, b.edits, (
    SELECT min(i.attempted_at) FROM kizami_intents AS i
    WHERE i.app = b.app AND i.kind = 'board' AND i.channel = b.channel AND i.item = b.name AND i.settled_at IS NULL
  ) AS in_doubt_since,
  b.note, b.off_at, b.aimed_at, b.replaced_at, b.parked_hash, b.possible_duplicates
FROM kizami_boards AS b
WHERE b.app = :app AND (:item IS NULL OR (b.name = :item AND b.channel = :channel))
ORDER BY b.name, b.channel

-- aimed_at is committed before the call: data older than what was ever tried is not shown any more, whatever became of
-- that try. What seems to come from after now was written before the clock was set back: stored times of that kind hold up
-- nothing, and rows of that kind are old. Until an edit is marked nobody knows which content is shown, so none is taken for unchanged. The claim starts
-- anew, so that it outlasts the call.
-- name: intend
UPDATE kizami_boards
SET aimed_at = :synced_at, content_hash = NULL, attempts = attempts + :is_post,
    claim_expires_boot = :boot + :expires_ms, claim_boot_id = :boot_id
WHERE app = :app AND name = :item AND channel = :channel AND claim_token = :token
  AND :synced_at <= :now AND (aimed_at IS NULL OR aimed_at <= :synced_at OR aimed_at > :now)
  AND (:lease IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  ))
RETURNING attempts

-- name: mark_posted
UPDATE kizami_boards
SET posted_channel = :posted_channel, ts = :ts, synced_at = :synced_at, content_hash = :content_hash, posted_at = :now,
    posts = posts + 1, note = :note, parked_hash = NULL, off_at = NULL,
    claim_token = NULL, claim_worker = NULL, claim_expires_boot = NULL, claim_boot_id = NULL
WHERE app = :app AND name = :item AND channel = :channel AND claim_token = :token
  AND (:lease IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  ))

-- name: mark_edited
UPDATE kizami_boards
SET synced_at = :synced_at, content_hash = :content_hash, edited_at = :now, edits = edits + 1, note = NULL,
    parked_hash = NULL, off_at = NULL, claim_token = NULL, claim_worker = NULL, claim_expires_boot = NULL, claim_boot_id = NULL
WHERE app = :app AND name = :item AND channel = :channel AND claim_token = :token AND (synced_at IS NULL OR synced_at <= :synced_at OR synced_at > :now)
  AND (:lease IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  ))

-- name: forget_message
UPDATE kizami_boards
SET ts = NULL, posted_channel = NULL, content_hash = NULL, replaced_at = :now, note = :note
WHERE app = :app AND name = :item AND channel = :channel AND claim_token = :token
  AND (replaced_at IS NULL OR replaced_at <= :now - :not_within_ms OR replaced_at > :now)
  AND (:lease IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  ))

-- name: hand_back
UPDATE kizami_boards
SET note = coalesce(:note, note), off_at = iif(:off, :now, off_at), parked_hash = coalesce(:parked_hash, parked_hash),
    claim_token = NULL, claim_worker = NULL, claim_expires_boot = NULL, claim_boot_id = NULL
WHERE app = :app AND name = :item AND channel = :channel AND claim_token = :token

-- name: is_claimed
SELECT 1 FROM kizami_boards WHERE app = :app AND name = :item AND channel = :channel AND claim_token = :token

-- Whoever holds the board now: the message may show something else than the row says.
-- name: distrust
UPDATE kizami_boards
SET content_hash = NULL, possible_duplicates = possible_duplicates + :posted, note = :note
WHERE app = :app AND name = :item AND channel = :channel

-- name: switch_on
UPDATE kizami_boards SET off_at = NULL, note = NULL WHERE app = :app AND name = :item AND channel = :channel AND off_at IS NOT NULL

-- name: free_of
UPDATE kizami_boards
SET claim_token = NULL, claim_worker = NULL, claim_expires_boot = NULL, claim_boot_id = NULL
WHERE claim_worker = :worker_id
