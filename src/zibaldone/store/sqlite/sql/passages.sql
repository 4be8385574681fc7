-- name: stored_chunks
-- What is stored of a document's passages, to see which of them stay.
SELECT chunk_key, content_hash, chunk_index, start_char, end_char
FROM chunks WHERE document_key = :document_key ORDER BY chunk_index;

-- name: insert_chunk
-- A passage that was not there before; its key comes back.
INSERT INTO chunks (document_key, chunk_index, start_char, end_char, heading, body, content_hash)
VALUES (:document_key, :chunk_index, :start_char, :end_char, :heading, :body, :content_hash)
RETURNING chunk_key;

-- name: insert_terms
-- The terms of a new passage.
INSERT INTO chunk_terms (rowid, title, heading, body) VALUES (:chunk_key, :title, :heading, :body);

-- name: move_chunk
-- A passage that stayed the same at another place.
UPDATE chunks SET chunk_index = :chunk_index, start_char = :start_char, end_char = :end_char
WHERE chunk_key = :chunk_key;

-- name: delete_chunk
-- A passage that is gone.
DELETE FROM chunks WHERE chunk_key = :chunk_key;

-- name: delete_terms
-- Its terms.
DELETE FROM chunk_terms WHERE rowid = :chunk_key;

-- name: log_vectors
-- Tell processes that hold its vectors in memory.
INSERT INTO vector_changes (model_id, chunk_key)
SELECT model_id, chunk_key FROM vectors WHERE chunk_key = :chunk_key;

-- name: delete_vectors
-- Its vectors, of every model.
DELETE FROM vectors WHERE chunk_key = :chunk_key;
