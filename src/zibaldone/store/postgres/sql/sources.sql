-- name: definition
-- How a source is set up, asked for by every write to one of its documents.
SELECT name, definition FROM zibaldone.sources WHERE source_id = %(source_id)s;

-- name: all
-- Every source of every namespace, with how much it holds and whether all of it is cut as defined.
SELECT s.source_id, s.namespace, s.name, s.kind, s.enabled, s.definition,
       coalesce(held.documents, 0), coalesce(held.chunks, 0)::bigint, coalesce(held.stale, 0) = 0,
       s.last_sync_at_us
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

-- name: records
-- Every source that the caller can see.
SELECT source_id, namespace, name, kind, enabled, definition, last_sync_at_us FROM zibaldone.sources
WHERE namespace IN (%(namespace)s, '*') ORDER BY source_id;

-- name: all_records
-- Every source of every namespace, as it is defined.
SELECT source_id, namespace, name, kind, enabled, definition, last_sync_at_us
FROM zibaldone.sources ORDER BY source_id;

-- name: record
-- One source, by its id.
SELECT source_id, namespace, name, kind, enabled, definition, last_sync_at_us FROM zibaldone.sources
WHERE source_id = %(source_id)s AND namespace IN (%(namespace)s, '*');

-- name: named
-- One source, by its name.
SELECT source_id, namespace, name, kind, enabled, definition, last_sync_at_us FROM zibaldone.sources
WHERE name = %(name)s AND namespace IN (%(namespace)s, '*');

-- name: is_taken
-- Whether a name means something in a namespace.
SELECT EXISTS (SELECT 1 FROM zibaldone.sources WHERE name = %(name)s
               AND (namespace IN (%(namespace)s, '*') OR %(namespace)s::text = '*'));

-- name: add
-- A new source.
INSERT INTO zibaldone.sources (namespace, name, kind, enabled, definition, created_at_us)
VALUES (%(namespace)s, %(name)s, %(kind)s, %(enabled)s, %(definition)s, %(at_us)s)
RETURNING source_id;

-- name: redefine
-- Another definition. Documents are cut again where it cuts them in another way.
UPDATE zibaldone.sources SET definition = %(definition)s, chunking_version = chunking_version + %(is_recut)s::bigint
WHERE source_id = %(source_id)s;

-- name: enable
-- Whether searches find its documents.
UPDATE zibaldone.sources SET enabled = %(enabled)s WHERE source_id = %(source_id)s RETURNING source_id;

-- name: release
-- Deleted documents of a source become deleted documents of the built-in one.
UPDATE zibaldone.documents SET source_id = %(kb_source_id)s
WHERE document_key IN (
    SELECT document_key FROM zibaldone.documents
    WHERE source_id = %(source_id)s AND deleted_at_us IS NOT NULL LIMIT %(limit)s)
RETURNING document_key;

-- name: has_documents
-- Whether a source has documents, deleted ones too.
SELECT EXISTS (SELECT 1 FROM zibaldone.documents WHERE source_id = %(source_id)s);

-- name: remove
-- A source that has no documents.
DELETE FROM zibaldone.sources WHERE source_id = %(source_id)s;

-- name: forget_rows
-- What is remembered of its rows; so in the next two.
DELETE FROM zibaldone.pulled_rows WHERE source_id = %(source_id)s;

-- name: forget_blocks
-- Their blocks.
DELETE FROM zibaldone.pulled_blocks WHERE source_id = %(source_id)s;

-- name: forget_runs
-- The runs of its syncs.
DELETE FROM zibaldone.pulled_runs WHERE source_id = %(source_id)s;

-- name: set_synced
-- When the source was last read to its end.
UPDATE zibaldone.sources SET last_sync_at_us = %(at_us)s WHERE source_id = %(source_id)s;
