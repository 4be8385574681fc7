-- name: definition
-- How a source is set up, asked for by every write to one of its documents.
SELECT name, definition FROM sources WHERE source_id = :source_id;

-- name: all
-- Every source of every namespace, with how much it holds and whether all of it is cut as defined.
SELECT s.source_id, s.namespace, s.name, s.kind, s.enabled, s.definition,
       coalesce(held.documents, 0), coalesce(held.chunks, 0), coalesce(held.stale, 0) = 0,
       s.last_sync_at_us
FROM sources s LEFT JOIN (
    SELECT d.source_id, count(*) AS documents, sum((
        SELECT count(*) FROM chunks c WHERE c.document_key = d.document_key
    )) AS chunks, sum(d.chunking_version <> o.chunking_version) AS stale
    FROM documents d JOIN sources o USING (source_id)
    WHERE d.deleted_at_us IS NULL GROUP BY d.source_id
) held USING (source_id)
ORDER BY s.source_id;

-- name: set_chunking
-- Another way to cut; what else is defined stays. A definition that is no object has nothing else.
UPDATE sources SET chunking_version = chunking_version + 1, definition = json_set(
    CASE json_type(definition) WHEN 'object' THEN definition ELSE '{}' END,
    '$.chunking', json(:chunking)
) WHERE source_id = :source_id
RETURNING chunking_version;

-- name: chunking_version
-- By which number the chunking of a source goes.
SELECT chunking_version FROM sources WHERE source_id = :source_id;

-- name: stale
-- A page of a source's live documents that were cut by an earlier chunking, in the table's order.
SELECT d.document_key, d.content_chars FROM documents d
WHERE d.document_key > :after AND d.source_id = :source_id AND d.deleted_at_us IS NULL
  AND d.chunking_version <> (SELECT chunking_version FROM sources WHERE source_id = :source_id)
ORDER BY d.document_key LIMIT :limit;

-- name: set_cut
-- Documents are cut as the definition of their source says.
UPDATE documents
SET chunking_version = (SELECT chunking_version FROM sources WHERE source_id = :source_id)
WHERE document_key IN (SELECT value FROM json_each(:document_keys)) AND source_id = :source_id;

-- name: texts
-- What documents' chunks are made of, of those that still are live ones of the source.
SELECT d.document_key, d.title, d.mime, b.body
FROM json_each(:document_keys) k CROSS JOIN documents d ON d.document_key = k.value
JOIN bodies b USING (document_key)
WHERE d.source_id = :source_id AND d.deleted_at_us IS NULL;

-- name: visible
-- Every source the caller can see, with how much it holds and when it was last read.
-- All documents are passed over once, however many sources there are.
SELECT s.source_id, s.name, s.enabled, s.last_sync_at_us,
       coalesce(held.documents, 0), coalesce(held.chunks, 0)
FROM sources s LEFT JOIN (
    SELECT d.source_id, count(*) AS documents, sum((
        SELECT count(*) FROM chunks c WHERE c.document_key = d.document_key
    )) AS chunks
    FROM documents d
    WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
      AND d.document_id >= :start AND d.document_id < coalesce(:end, x'')
    GROUP BY d.source_id
) held USING (source_id)
WHERE s.namespace IN (:namespace, '*') ORDER BY s.source_id;

-- name: records
-- Every source that the caller can see.
SELECT source_id, namespace, name, kind, enabled, definition, last_sync_at_us FROM sources
WHERE namespace IN (:namespace, '*') ORDER BY source_id;

-- name: all_records
-- Every source of every namespace, as it is defined.
SELECT source_id, namespace, name, kind, enabled, definition, last_sync_at_us FROM sources
ORDER BY source_id;

-- name: record
-- One source, by its id.
SELECT source_id, namespace, name, kind, enabled, definition, last_sync_at_us FROM sources
WHERE source_id = :source_id AND namespace IN (:namespace, '*');

-- name: named
-- One source, by its name.
SELECT source_id, namespace, name, kind, enabled, definition, last_sync_at_us FROM sources
WHERE name = :name AND namespace IN (:namespace, '*');

-- name: is_taken
-- Whether a name means something in a namespace.
SELECT EXISTS (SELECT 1 FROM sources WHERE name = :name
               AND (namespace IN (:namespace, '*') OR :namespace = '*'));

-- name: add
-- A new source.
INSERT INTO sources (namespace, name, kind, enabled, definition, created_at_us)
VALUES (:namespace, :name, :kind, :enabled, :definition, :at_us)
RETURNING source_id;

-- name: redefine
-- Another definition. Documents are cut again where it cuts them in another way.
UPDATE sources SET definition = :definition, chunking_version = chunking_version + :is_recut
WHERE source_id = :source_id;

-- name: enable
-- Whether searches find its documents.
UPDATE sources SET enabled = :enabled WHERE source_id = :source_id RETURNING source_id;

-- name: release
-- Deleted documents of a source become deleted documents of the built-in one.
UPDATE documents SET source_id = :kb_source_id
WHERE document_key IN (
    SELECT document_key FROM documents
    WHERE source_id = :source_id AND deleted_at_us IS NOT NULL LIMIT :limit)
RETURNING document_key;

-- name: has_documents
-- Whether a source has documents, deleted ones too.
SELECT EXISTS (SELECT 1 FROM documents WHERE source_id = :source_id);

-- name: remove
-- A source that has no documents.
DELETE FROM sources WHERE source_id = :source_id;

-- name: forget_rows
-- What is remembered of its rows; so in the next two.
DELETE FROM pulled_rows WHERE source_id = :source_id;

-- name: forget_blocks
-- Their blocks.
DELETE FROM pulled_blocks WHERE source_id = :source_id;

-- name: forget_runs
-- The runs of its syncs.
DELETE FROM pulled_runs WHERE source_id = :source_id;

-- name: set_synced
-- When the source was last read to its end.
UPDATE sources SET last_sync_at_us = :at_us WHERE source_id = :source_id;
