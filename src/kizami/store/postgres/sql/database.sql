-- name: check
SELECT count(*) FROM kizami_migrations
