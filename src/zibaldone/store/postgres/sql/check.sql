-- name: facts
-- Name, size and schema of the database.
SELECT current_database()::text, pg_database_size(current_database()),
       (SELECT max(number) FROM zibaldone.migrations), current_setting('server_version');

-- name: invalid_indexes
-- An index whose build was cut short serves nobody.
SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'zibaldone' AND NOT i.indisvalid
  AND c.oid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index)
LIMIT %(limit)s;

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
    OR EXISTS (SELECT 1 FROM zibaldone.chunks c JOIN zibaldone.chunk_terms t USING (chunk_key)
               WHERE c.document_key = d.document_key AND t.namespace <> d.namespace)
    OR EXISTS (SELECT 1 FROM zibaldone.chunks c JOIN zibaldone.vectors v USING (chunk_key)
               WHERE c.document_key = d.document_key
                 AND (v.namespace <> d.namespace OR v.document_key <> d.document_key))
LIMIT %(limit)s;

-- name: chunks_without_terms
-- Every chunk can be found.
SELECT d.document_id || '#' || c.chunk_index
FROM zibaldone.chunks c JOIN zibaldone.documents d USING (document_key)
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.chunk_terms t WHERE t.chunk_key = c.chunk_key)
LIMIT %(limit)s;

-- name: terms_without_chunk
-- Nothing is found that is not there.
SELECT t.chunk_key FROM zibaldone.chunk_terms t
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.chunks c WHERE c.chunk_key = t.chunk_key)
LIMIT %(limit)s;

-- name: terms_without_posting
-- Terms are in a segment, or wait to be.
SELECT t.chunk_key FROM zibaldone.chunk_terms t
LEFT JOIN (
    SELECT unnest(chunk_keys) AS chunk_key FROM zibaldone.segments
    UNION ALL SELECT chunk_key FROM zibaldone.unposted
) p USING (chunk_key)
WHERE p.chunk_key IS NULL LIMIT %(limit)s;

-- name: postings_without_segment
-- What is posted can be merged and dropped.
SELECT DISTINCT p.segment FROM zibaldone.postings p
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.segments s WHERE s.segment = p.segment)
LIMIT %(limit)s;

-- name: miscounted
-- The statistics say how many chunks there are, and how long they are.
SELECT 'there are ' || held.chunks || ' of length ' || held.length || ', counted were '
    || counted.chunks || ' of length ' || counted.length
FROM (SELECT count(*) AS chunks, coalesce(sum(length), 0) AS length
      FROM zibaldone.chunk_terms) held
CROSS JOIN (
    SELECT coalesce(sum(chunks), 0) AS chunks, coalesce(sum(length), 0) AS length FROM (
        SELECT chunks, length FROM zibaldone.term_statistics WHERE term = ''
        UNION ALL SELECT count(*), sum(length) FROM zibaldone.unposted
        UNION ALL SELECT -count(*), -sum(length) FROM zibaldone.removed_terms
    ) changes
) counted
WHERE (held.chunks, held.length) <> (counted.chunks, counted.length) LIMIT %(limit)s;

-- name: vectors_without_chunk
-- The same as for terms.
SELECT v.chunk_key FROM zibaldone.vectors v
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.chunks c WHERE c.chunk_key = v.chunk_key)
LIMIT %(limit)s;

-- name: bodies
-- Bodies with the hash that was taken when they were written, page by page.
SELECT d.document_key, d.document_id, d.content_hash, b.body
FROM zibaldone.documents d JOIN zibaldone.bodies b USING (document_key)
WHERE d.document_key > %(after)s ORDER BY d.document_key LIMIT %(limit)s;
