-- name: position
SELECT position FROM kizami_cursors WHERE app = :app AND name = :name

-- name: begin
INSERT INTO kizami_cursors (app, name, position, moved_at) VALUES (:app, :name, :position, :now)
ON CONFLICT (app, name) DO NOTHING

-- name: move
UPDATE kizami_cursors SET position = :position, moved_at = :now WHERE app = :app AND name = :name AND position = :read
