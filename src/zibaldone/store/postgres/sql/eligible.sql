-- name: documents
-- Documents that are live, visible, in enabled sources, and pass a filter.
-- Each condition can be what the planner begins with.
SELECT d.document_key
FROM zibaldone.documents d JOIN zibaldone.facets f USING (document_key)
WHERE d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
  AND d.source_id IN (
    SELECT source_id FROM zibaldone.sources
    WHERE enabled = 1 AND namespace IN (%(namespace)s, '*')
      AND (%(source_ids)s::bigint[] IS NULL OR source_id = ANY(%(source_ids)s::bigint[]))
      AND (%(source_names)s::text[] IS NULL OR name = ANY(%(source_names)s::text[])))
  AND (%(document_ids)s::text[] IS NULL OR d.document_id = ANY(%(document_ids)s::text[]))
  AND (%(without_ids)s::text[] IS NULL OR d.document_id <> ALL(%(without_ids)s::text[]))
  AND (%(min_score)s::float8 IS NULL OR f.score >= %(min_score)s)
  AND (%(post_types)s::bigint[] IS NULL OR f.post_type = ANY(%(post_types)s::bigint[]))
  AND (%(created_after)s::bigint IS NULL OR f.created_us >= %(created_after)s)
  AND (%(created_before)s::bigint IS NULL OR f.created_us < %(created_before)s)
  AND (%(tags_any)s::text[] IS NULL OR d.document_key IN (
    SELECT g.document_key FROM zibaldone.document_tags g
    WHERE g.namespace = %(namespace)s AND g.tag = ANY(%(tags_any)s::text[])))
  AND (%(tags_all)s::text[] IS NULL OR d.document_key IN (
    SELECT g.document_key FROM zibaldone.document_tags g
    WHERE g.namespace = %(namespace)s AND g.tag = ANY(%(tags_all)s::text[])
    GROUP BY g.document_key HAVING count(*) = cardinality(%(tags_all)s::text[])));

-- name: document
-- Whether one document passes. OFFSET 0: it is looked at by its key, whatever the planner thinks.
SELECT d.document_key
FROM zibaldone.documents d JOIN zibaldone.facets f USING (document_key)
WHERE d.document_key = %(document_key)s
  AND d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
  AND d.source_id IN (
    SELECT source_id FROM zibaldone.sources
    WHERE enabled = 1 AND namespace IN (%(namespace)s, '*')
      AND (%(source_ids)s::bigint[] IS NULL OR source_id = ANY(%(source_ids)s::bigint[]))
      AND (%(source_names)s::text[] IS NULL OR name = ANY(%(source_names)s::text[])))
  AND (%(document_ids)s::text[] IS NULL OR d.document_id = ANY(%(document_ids)s::text[]))
  AND (%(without_ids)s::text[] IS NULL OR d.document_id <> ALL(%(without_ids)s::text[]))
  AND (%(min_score)s::float8 IS NULL OR f.score >= %(min_score)s)
  AND (%(post_types)s::bigint[] IS NULL OR f.post_type = ANY(%(post_types)s::bigint[]))
  AND (%(created_after)s::bigint IS NULL OR f.created_us >= %(created_after)s)
  AND (%(created_before)s::bigint IS NULL OR f.created_us < %(created_before)s)
  AND (%(tags_any)s::text[] IS NULL OR EXISTS (
    SELECT 1 FROM zibaldone.document_tags g
    WHERE g.document_key = d.document_key AND g.tag = ANY(%(tags_any)s::text[])))
  AND (%(tags_all)s::text[] IS NULL OR cardinality(%(tags_all)s::text[]) = (
    SELECT count(*) FROM zibaldone.document_tags g
    WHERE g.document_key = d.document_key AND g.tag = ANY(%(tags_all)s::text[])))
OFFSET 0;

-- name: chunks
-- Those of some chunks whose documents pass. What follows the mark is replaced by `documents`.
SELECT c.chunk_key
FROM (/*eligible*/VALUES (0::bigint)) d (document_key)
JOIN zibaldone.chunks c USING (document_key)
WHERE c.namespace = %(namespace)s AND c.chunk_key = ANY(%(chunk_keys)s::bigint[]);

-- name: present
-- Those of some chunks that exist: their documents are live.
-- NULL: some sources are disabled, so that this does not say enough.
SELECT c.chunk_key FROM zibaldone.chunks c
WHERE c.namespace = %(namespace)s AND c.chunk_key = ANY(%(chunk_keys)s::bigint[])
  AND NOT EXISTS (
    SELECT 1 FROM zibaldone.sources WHERE enabled = 0 AND namespace IN (%(namespace)s, '*'))
UNION ALL
SELECT NULL FROM zibaldone.sources WHERE enabled = 0 AND namespace IN (%(namespace)s, '*');

-- name: few
-- Chunks of documents that pass. What follows the mark is replaced by `documents`.
SELECT c.chunk_key
FROM (/*eligible*/VALUES (0::bigint)) d (document_key)
JOIN zibaldone.chunks c USING (document_key)
WHERE c.namespace = %(namespace)s
LIMIT %(limit)s;
