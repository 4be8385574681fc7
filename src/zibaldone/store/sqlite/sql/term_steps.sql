-- name: unsettle
-- The terms of these chunks are left for later.
INSERT INTO unsettled_terms (chunk_key)
SELECT value FROM json_each(:chunk_keys) WHERE true ON CONFLICT DO NOTHING;

-- name: settle
-- These are dealt with now, unless somebody else was faster; which of the chunks are there.
DELETE FROM unsettled_terms WHERE chunk_key IN (SELECT value FROM json_each(:chunk_keys))
RETURNING chunk_key, EXISTS (SELECT 1 FROM chunks c WHERE c.chunk_key = unsettled_terms.chunk_key);

-- name: last_unsettled
-- Up to which key something was left.
SELECT max(chunk_key) FROM unsettled_terms;

-- name: unsettled
-- What was left, in order, with all that terms are made of; NULL for chunks that are gone.
SELECT u.chunk_key, d.title, c.heading, c.body
FROM unsettled_terms u
LEFT JOIN chunks c USING (chunk_key)
LEFT JOIN documents d USING (document_key)
WHERE u.chunk_key <= :last
ORDER BY u.chunk_key LIMIT :limit;
