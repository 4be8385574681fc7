-- name: definition
-- How a source is set up, asked for by every write to one of its documents.
SELECT name, definition FROM zibaldone.sources WHERE source_id = %(source_id)s;

-- name: all
-- Every source of every namespace, with how much it holds and whether all of it is cut as defined.
SELECT s.source_id, s.namespace, s.name, s.kind, s.enabled, s.definition,
       coalesce(held.documents, 0), coalesce(held.chunks, 0)::bigint, coalesce(held.stale, 0) = 0
FROM zibaldone.sources s LEFT JOIN (
    SELECT d.source_id, count(*) AS documents, sum((
        SELECT count(*) FROM zibaldone.chunks c WHERE c.document_key = d.document_key
    )) AS chunks, count(*) FILTER (WHERE d.chunking_version <> o.chunking_version) AS stale
    FROM zibaldone.documents d JOIN zibaldone.sources o USING (source_id)
    WHERE d.deleted_at_us IS NULL GROUP BY d.source_id
) held USING (source_id)
ORDER BY s.source_id;

-- name: set_chunking
-- Another definition, and so another way to cut.
UPDATE zibaldone.sources SET chunking_version = chunking_version + 1, definition = %(definition)s
WHERE source_id = %(source_id)s
RETURNING chunking_version;

-- name: chunking_version
-- By which number the chunking of a source goes.
SELECT chunking_version FROM zibaldone.sources WHERE source_id = %(source_id)s;

-- name: stale
-- A page of a source's live documents that were cut by an earlier chunking, in the table's order.
SELECT d.document_key, d.content_chars FROM zibaldone.documents d
WHERE d.document_key > %(after)s AND d.source_id = %(source_id)s AND d.deleted_at_us IS NULL
  AND d.chunking_version <> (
      SELECT chunking_version FROM zibaldone.sources WHERE source_id = %(source_id)s)
ORDER BY d.document_key LIMIT %(limit)s;

-- name: set_cut
-- Documents are cut as the definition of their source says.
UPDATE zibaldone.documents SET chunking_version = (
    SELECT chunking_version FROM zibaldone.sources WHERE source_id = %(source_id)s)
WHERE document_key = ANY(%(document_keys)s::bigint[]) AND source_id = %(source_id)s;

-- name: texts
-- What documents' chunks are made of, of those that still are live ones of the source.
SELECT d.document_key, d.title, d.mime, b.body
FROM zibaldone.documents d JOIN zibaldone.bodies b USING (document_key)
WHERE d.document_key = ANY(%(document_keys)s::bigint[])
  AND d.source_id = %(source_id)s AND d.deleted_at_us IS NULL;

-- name: visible
-- Every source the caller can see, with how much it holds and when it was last read.
SELECT s.source_id, s.name, s.enabled, s.last_sync_at_us,
       coalesce(held.documents, 0), coalesce(held.chunks, 0)::bigint
FROM zibaldone.sources s LEFT JOIN (
    SELECT d.source_id, count(*) AS documents, sum((
        SELECT count(*) FROM zibaldone.chunks c WHERE c.document_key = d.document_key
    )) AS chunks
    FROM zibaldone.documents d
    WHERE d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
      AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
    GROUP BY d.source_id
) held USING (source_id)
WHERE s.namespace IN (%(namespace)s, '*') ORDER BY s.source_id;
