-- A number that changes whenever anybody else's commit changed the file.
-- name: data_version
PRAGMA data_version

-- name: check
SELECT count(*) FROM kizami_migrations
