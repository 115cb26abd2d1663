-- name: position
SELECT position FROM kizami_cursors WHERE app = :app AND name = :name

-- name: move
INSERT INTO kizami_cursors (app, name, position, moved_at)
SELECT :app, :name, :position, :now
WHERE :lease::text IS NULL OR EXISTS (
  SELECT 1 FROM kizami_leases AS l WHERE l.app = :app AND l.name = :lease AND l.run_id = :run_id
  FOR SHARE
)
ON CONFLICT (app, name) DO UPDATE SET position = excluded.position, moved_at = excluded.moved_at
