-- name: database_id
SELECT database_id FROM kizami_identity
