-- name: documents
-- Documents that are live, visible, in enabled sources, and pass a filter.
-- What is between marks is left out where the filter does not say it: with an OR in its place, the
-- planner would not begin with it.
SELECT d.document_key
FROM zibaldone.documents d JOIN zibaldone.facets f USING (document_key)
WHERE d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s /*if end*/AND d.document_id < %(end)s/*fi*/
  AND d.source_id IN (
    SELECT source_id FROM zibaldone.sources
    WHERE enabled = 1 AND namespace IN (%(namespace)s, '*')
      /*if source_ids*/AND source_id = ANY(%(source_ids)s::bigint[])/*fi*/
      /*if source_names*/AND name = ANY(%(source_names)s::text[])/*fi*/)
  /*if document_ids*/AND d.document_id = ANY(%(document_ids)s::text[])/*fi*/
  /*if without_ids*/AND d.document_id <> ALL(%(without_ids)s::text[])/*fi*/
  /*if min_score*/AND f.score >= %(min_score)s/*fi*/
  /*if post_types*/AND f.post_type = ANY(%(post_types)s::bigint[])/*fi*/
  /*if created_after*/AND f.created_us >= %(created_after)s/*fi*/
  /*if created_before*/AND f.created_us < %(created_before)s/*fi*/
  /*if updated_after*/AND d.updated_at_us >= %(updated_after)s/*fi*/
  /*if updated_before*/AND d.updated_at_us < %(updated_before)s/*fi*/
  /*if tags_any*/AND d.document_key IN (
    SELECT g.document_key FROM zibaldone.document_tags g
    WHERE g.namespace = %(namespace)s AND g.tag = ANY(%(tags_any)s::text[]))/*fi*/
  /*if tags_anywhere*/AND d.document_key IN (
    SELECT g.document_key FROM zibaldone.document_tags g
    WHERE g.namespace = %(namespace)s AND g.tag = ANY(%(tags_anywhere)s::text[])
    GROUP BY g.document_key HAVING count(*) = cardinality(%(tags_anywhere)s::text[]))/*fi*/
  /*if tags_in_range*/AND cardinality(%(tags_in_range)s::text[]) = (
    SELECT count(*) FROM zibaldone.document_tags g
    WHERE g.document_key = d.document_key AND g.tag = ANY(%(tags_in_range)s::text[]))/*fi*/;

-- name: document
-- Whether one document passes. OFFSET 0: it is looked at by its key, whatever the planner thinks.
SELECT d.document_key
FROM (SELECT * FROM zibaldone.documents WHERE document_key = %(document_key)s OFFSET 0) d
JOIN zibaldone.facets f USING (document_key)
WHERE d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s /*if end*/AND d.document_id < %(end)s/*fi*/
  AND d.source_id IN (
    SELECT source_id FROM zibaldone.sources
    WHERE enabled = 1 AND namespace IN (%(namespace)s, '*')
      /*if source_ids*/AND source_id = ANY(%(source_ids)s::bigint[])/*fi*/
      /*if source_names*/AND name = ANY(%(source_names)s::text[])/*fi*/)
  /*if document_ids*/AND d.document_id = ANY(%(document_ids)s::text[])/*fi*/
  /*if without_ids*/AND d.document_id <> ALL(%(without_ids)s::text[])/*fi*/
  /*if min_score*/AND f.score >= %(min_score)s/*fi*/
  /*if post_types*/AND f.post_type = ANY(%(post_types)s::bigint[])/*fi*/
  /*if created_after*/AND f.created_us >= %(created_after)s/*fi*/
  /*if created_before*/AND f.created_us < %(created_before)s/*fi*/
  /*if updated_after*/AND d.updated_at_us >= %(updated_after)s/*fi*/
  /*if updated_before*/AND d.updated_at_us < %(updated_before)s/*fi*/
  /*if tags_any*/AND EXISTS (
    SELECT 1 FROM zibaldone.document_tags g
    WHERE g.document_key = d.document_key AND g.tag = ANY(%(tags_any)s::text[]))/*fi*/
  /*if tags_all*/AND cardinality(%(tags_all)s::text[]) = (
    SELECT count(*) FROM zibaldone.document_tags g
    WHERE g.document_key = d.document_key AND g.tag = ANY(%(tags_all)s::text[]))/*fi*/
OFFSET 0;

-- name: chunks
-- Those of some chunks whose documents pass. What follows the mark is replaced by `documents`.
SELECT c.chunk_key
FROM (/*eligible*/VALUES (0::bigint)) d (document_key)
JOIN zibaldone.chunks c USING (document_key)
WHERE c.namespace = %(namespace)s AND c.chunk_key = ANY(%(chunk_keys)s::bigint[]);

-- name: chunks_looked_up
-- The same for few chunks: whether each one passes.
-- What it costs depends on them alone, not on what the planner thinks of the namespace. What follows the mark is replaced by `document`.
SELECT o.chunk_key FROM zibaldone.chunks o
WHERE o.namespace = %(namespace)s AND o.chunk_key = ANY(%(chunk_keys)s::bigint[])
  AND EXISTS (/*eligible*/SELECT o.document_key);

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
