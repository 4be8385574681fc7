-- name: insert
-- The terms of new chunks.
INSERT INTO chunk_terms (rowid, title, heading, body)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:terms);

-- name: delete
-- The terms of chunks that are gone.
DELETE FROM chunk_terms WHERE rowid IN (SELECT value FROM json_each(:chunk_keys));
