-- A board that moves to another channel starts there anew: its old message stays behind, and it is on again.
-- name: claim
INSERT INTO kizami_boards (app, name, channel, claim_token, claim_worker, claim_expires_at)
SELECT :app, :item, :channel, :token, :worker_id, :now + :expires_ms
WHERE :lease::text IS NULL OR EXISTS (
  SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  FOR SHARE
)
ON CONFLICT (app, name) DO UPDATE SET
  ts             = CASE WHEN kizami_boards.channel = excluded.channel THEN kizami_boards.ts ELSE NULL END,
  posted_channel = CASE WHEN kizami_boards.channel = excluded.channel THEN kizami_boards.posted_channel ELSE NULL END,
  synced_at      = CASE WHEN kizami_boards.channel = excluded.channel THEN kizami_boards.synced_at ELSE NULL END,
  content_hash   = CASE WHEN kizami_boards.channel = excluded.channel THEN kizami_boards.content_hash ELSE NULL END,
  parked_hash    = CASE WHEN kizami_boards.channel = excluded.channel THEN kizami_boards.parked_hash ELSE NULL END,
  replaced_at    = CASE WHEN kizami_boards.channel = excluded.channel THEN kizami_boards.replaced_at ELSE NULL END,
  off            = CASE WHEN kizami_boards.channel = excluded.channel THEN kizami_boards.off ELSE false END,
  channel        = excluded.channel,
  claim_token = excluded.claim_token, claim_worker = excluded.claim_worker,
  claim_expires_at = excluded.claim_expires_at
WHERE kizami_boards.claim_token IS NULL
   OR kizami_boards.claim_token = excluded.claim_token
   OR kizami_boards.claim_expires_at <= :now

-- name: list
SELECT b.app, b.name, b.channel, b.posted_channel, b.ts, b.synced_at, b.content_hash, b.posted_at, b.edited_at,
  b.posts, b.edits, (
    SELECT min(i.attempted_at) FROM kizami_intents AS i
    WHERE i.app = b.app AND i.kind = 'board' AND i.channel = b.channel AND i.item = b.name AND i.settled_at IS NULL
  ) AS in_doubt_since,
  b.note, b.off, b.aimed_at, b.replaced_at, b.parked_hash
FROM kizami_boards AS b
WHERE b.app = :app AND (:item::text IS NULL OR b.name = :item)
ORDER BY b.name

-- aimed_at is committed before the call: data older than what was ever tried is not shown any more, whatever became of
-- that try. The claim starts anew, so that it outlasts the call.
-- name: intend
UPDATE kizami_boards
SET aimed_at = :synced_at, attempts = attempts + :is_post, claim_expires_at = :now + :expires_ms
WHERE app = :app AND name = :item AND claim_token = :token AND (aimed_at IS NULL OR aimed_at <= :synced_at)
  AND (:lease::text IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  FOR SHARE
  ))
RETURNING attempts

-- name: mark_posted
UPDATE kizami_boards
SET posted_channel = :posted_channel, ts = :ts, synced_at = :synced_at, content_hash = :content_hash, posted_at = :now,
    posts = posts + 1, note = NULL, parked_hash = NULL,
    claim_token = NULL, claim_worker = NULL, claim_expires_at = NULL
WHERE app = :app AND name = :item AND claim_token = :token
  AND (:lease::text IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  FOR SHARE
  ))

-- name: mark_edited
UPDATE kizami_boards
SET synced_at = :synced_at, content_hash = :content_hash, edited_at = :now, edits = edits + 1, note = NULL,
    parked_hash = NULL, claim_token = NULL, claim_worker = NULL, claim_expires_at = NULL
WHERE app = :app AND name = :item AND claim_token = :token AND (synced_at IS NULL OR synced_at <= :synced_at)
  AND (:lease::text IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  FOR SHARE
  ))

-- name: forget_message
UPDATE kizami_boards
SET ts = NULL, posted_channel = NULL, content_hash = NULL, replaced_at = :now, note = :note
WHERE app = :app AND name = :item AND claim_token = :token AND (replaced_at IS NULL OR replaced_at <= :now - :not_within_ms)
  AND (:lease::text IS NULL OR EXISTS (
    SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  FOR SHARE
  ))

-- name: hand_back
UPDATE kizami_boards
SET note = coalesce(:note, note), off = off OR :off, parked_hash = coalesce(:parked_hash, parked_hash),
    claim_token = NULL, claim_worker = NULL, claim_expires_at = NULL
WHERE app = :app AND name = :item AND claim_token = :token

-- name: is_claimed
SELECT 1 FROM kizami_boards WHERE app = :app AND name = :item AND claim_token = :token

-- name: switch_on
UPDATE kizami_boards SET off = false, note = NULL WHERE app = :app AND name = :item AND off

-- name: free_of
UPDATE kizami_boards
SET claim_token = NULL, claim_worker = NULL, claim_expires_at = NULL
WHERE claim_worker = :worker_id
