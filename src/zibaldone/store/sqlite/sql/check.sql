-- name: documents_without_body
-- Every document has a body, deleted ones too.
SELECT d.document_id FROM documents d LEFT JOIN bodies b USING (document_key)
WHERE b.document_key IS NULL LIMIT :limit;

-- name: documents_with_broken_history
-- The states before the current one are all there, without a gap.
SELECT d.document_id FROM documents d JOIN revisions r USING (document_key)
GROUP BY d.document_key
HAVING max(r.revision) <> d.revision - 1 OR count(*) <> max(r.revision) - min(r.revision) + 1
LIMIT :limit;

-- name: deleted_documents_with_chunks
-- What is deleted is not found by words.
SELECT DISTINCT d.document_id FROM documents d JOIN chunks c USING (document_key)
WHERE d.deleted_at_us IS NOT NULL LIMIT :limit;

-- name: chunks_without_terms
-- Every chunk can be found, or is about to be; the index keeps one row about the length of each.
SELECT d.document_id || '#' || c.chunk_index FROM chunks c JOIN documents d USING (document_key)
WHERE NOT EXISTS (SELECT 1 FROM chunk_terms_docsize t WHERE t.id = c.chunk_key)
  AND NOT EXISTS (SELECT 1 FROM unsettled_terms u WHERE u.chunk_key = c.chunk_key)
LIMIT :limit;

-- name: terms_without_chunk
-- Nothing is found that is not there.
SELECT t.id FROM chunk_terms_docsize t
WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.chunk_key = t.id)
  AND NOT EXISTS (SELECT 1 FROM unsettled_terms u WHERE u.chunk_key = t.id)
LIMIT :limit;

-- name: vectors_without_chunk
-- The same for vectors.
SELECT v.chunk_key FROM vectors v
WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.chunk_key = v.chunk_key) LIMIT :limit;

-- name: bodies
-- Every body with the hash that was taken when it was written.
SELECT d.document_id, d.content_hash, b.body FROM documents d JOIN bodies b USING (document_key);
