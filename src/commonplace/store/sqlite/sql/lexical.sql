-- name: search
-- The best passages of live documents in scope, best first (FTS5's rank is smaller for better).
SELECT c.chunk_key, d.document_id, c.chunk_index, d.title, c.heading, c.body, c.start_char,
       -t.rank AS score
FROM chunk_terms t
JOIN chunks c ON c.chunk_key = t.rowid
JOIN documents d USING (document_key)
WHERE t.chunk_terms MATCH :match AND d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
ORDER BY t.rank
LIMIT :limit;

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

-- name: delete_vectors
-- Its vectors, of every model.
DELETE FROM vectors WHERE chunk_key = :chunk_key AND model_id IN (SELECT model_id FROM models);
