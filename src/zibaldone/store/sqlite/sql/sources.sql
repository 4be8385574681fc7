-- name: definition
-- How a source is set up, asked for by every write to one of its documents.
SELECT name, definition FROM sources WHERE source_id = :source_id;

-- name: all
-- Every source of every namespace, with how much it holds.
SELECT s.source_id, s.namespace, s.name, s.kind, s.enabled, s.definition,
       coalesce(held.documents, 0), coalesce(held.chunks, 0)
FROM sources s LEFT JOIN (
    SELECT d.source_id, count(*) AS documents, sum((
        SELECT count(*) FROM chunks c WHERE c.document_key = d.document_key
    )) AS chunks
    FROM documents d WHERE d.deleted_at_us IS NULL GROUP BY d.source_id
) held USING (source_id)
ORDER BY s.source_id;

-- name: set_chunking
-- Another way to cut; what else is defined stays. A definition that is no object has nothing else.
UPDATE sources SET definition = json_set(
    CASE json_type(definition) WHEN 'object' THEN definition ELSE '{}' END,
    '$.chunking', json(:chunking), '$.chunking_unfinished', json('true')
) WHERE source_id = :source_id;

-- name: set_cut
-- Every document is cut as the definition says.
UPDATE sources SET definition = json_remove(definition, '$.chunking_unfinished')
WHERE source_id = :source_id;

-- name: last_document
-- The newest document key.
SELECT coalesce(max(document_key), 0) FROM documents;

-- name: documents
-- A page of a source's live documents, in the order of the table itself.
SELECT document_key, content_chars FROM documents
WHERE document_key > :after AND document_key <= :through
  AND source_id = :source_id AND deleted_at_us IS NULL
ORDER BY document_key LIMIT :limit;

-- name: text
-- What a document's passages are made of, if it still is a live one of the source.
SELECT d.title, d.mime, b.body FROM documents d JOIN bodies b USING (document_key)
WHERE d.document_key = :document_key AND d.source_id = :source_id AND d.deleted_at_us IS NULL;

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
      AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
    GROUP BY d.source_id
) held USING (source_id)
WHERE s.namespace IN (:namespace, '*') ORDER BY s.source_id;
