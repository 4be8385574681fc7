-- name: append
-- Tell processes that hold vectors in memory which changed; chunk 0 stands for all of a model.
INSERT INTO vector_changes (model_id, chunk_key)
SELECT value ->> 0, value ->> 1 FROM json_each(:changes);

-- name: append_removed
-- The vectors of chunks that are about to be removed, of every model.
INSERT INTO vector_changes (model_id, chunk_key)
SELECT v.model_id, v.chunk_key FROM json_each(:chunk_keys) k
CROSS JOIN vectors v ON v.chunk_key = k.value;

-- name: trim
-- Keep the log short.
DELETE FROM vector_changes
WHERE change_key <= (SELECT coalesce(max(change_key), 0) FROM vector_changes) - :kept;
