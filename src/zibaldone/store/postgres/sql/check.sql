-- name: facts
-- Name, size and schema of the database.
SELECT current_database()::text, pg_database_size(current_database()),
       (SELECT max(number) FROM zibaldone.migrations), current_setting('server_version');

-- name: invalid_indexes
-- An index whose build was cut short serves nobody.
SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'zibaldone' AND NOT i.indisvalid LIMIT %(limit)s;

-- name: documents_without_body
-- Every document has a body, deleted ones too.
SELECT d.document_id FROM zibaldone.documents d LEFT JOIN zibaldone.bodies b USING (document_key)
WHERE b.document_key IS NULL LIMIT %(limit)s;

-- name: documents_with_broken_history
-- The states before the current one are all there, without a gap.
SELECT d.document_id FROM zibaldone.documents d JOIN zibaldone.revisions r USING (document_key)
GROUP BY d.document_key
HAVING max(r.revision) <> d.revision - 1 OR count(*) <> max(r.revision) - min(r.revision) + 1
LIMIT %(limit)s;

-- name: deleted_documents_with_chunks
-- What is deleted is not found by words.
SELECT DISTINCT d.document_id FROM zibaldone.documents d
JOIN zibaldone.chunks c USING (document_key)
WHERE d.deleted_at_us IS NOT NULL LIMIT %(limit)s;

-- name: strayed_rows
-- What belongs to a document is in its namespace.
SELECT d.document_id FROM zibaldone.documents d WHERE
    EXISTS (SELECT 1 FROM zibaldone.bodies b
            WHERE b.document_key = d.document_key AND b.namespace <> d.namespace)
    OR EXISTS (SELECT 1 FROM zibaldone.revisions r
               WHERE r.document_key = d.document_key AND r.namespace <> d.namespace)
    OR EXISTS (SELECT 1 FROM zibaldone.facets f
               WHERE f.document_key = d.document_key AND f.namespace <> d.namespace)
    OR EXISTS (SELECT 1 FROM zibaldone.document_tags t
               WHERE t.document_key = d.document_key AND t.namespace <> d.namespace)
    OR EXISTS (SELECT 1 FROM zibaldone.chunks c
               WHERE c.document_key = d.document_key AND c.namespace <> d.namespace)
LIMIT %(limit)s;

-- name: vectors_without_chunk
-- Nothing is found that is not there.
SELECT v.chunk_key FROM zibaldone.vectors v
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.chunks c WHERE c.chunk_key = v.chunk_key)
LIMIT %(limit)s;

-- name: bodies
-- Bodies with the hash that was taken when they were written, page by page.
SELECT d.document_key, d.document_id, d.content_hash, b.body
FROM zibaldone.documents d JOIN zibaldone.bodies b USING (document_key)
WHERE d.document_key > %(after)s ORDER BY d.document_key LIMIT %(limit)s;
