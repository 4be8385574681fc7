-- name: views
-- Chunks by key with what is shown of them, in one statement however many there are.
-- CROSS JOIN: begin with the keys; the planner would walk all documents.
SELECT c.chunk_key, d.document_id, c.chunk_index, d.title, c.heading, c.body, c.start_char,
       d.source_id, s.name, d.metadata, d.tags, d.updated_at_us
FROM json_each(:chunk_keys) k
CROSS JOIN chunks c ON c.chunk_key = k.value
CROSS JOIN documents d USING (document_key)
CROSS JOIN sources s USING (source_id)
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: views_at
-- Chunks by document and number.
SELECT c.chunk_key, d.document_id, c.chunk_index, d.title, c.heading, c.body, c.start_char,
       d.source_id, s.name, d.metadata, d.tags, d.updated_at_us
FROM json_each(:places) p
CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = p.value ->> 0
CROSS JOIN chunks c ON c.document_key = d.document_key AND c.chunk_index = p.value ->> 1
CROSS JOIN sources s USING (source_id)
WHERE d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: documents_of
-- The document of each of these chunks, without reading the chunks themselves.
SELECT c.chunk_key, d.document_id
FROM json_each(:chunk_keys) k
CROSS JOIN chunks c ON c.chunk_key = k.value
CROSS JOIN documents d USING (document_key)
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: source_names
-- Which source each of these documents is of.
SELECT d.document_id, s.name
FROM json_each(:document_ids) i
CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = i.value
CROSS JOIN sources s USING (source_id)
WHERE d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: stored
-- What is stored of a document's chunks, to see which of them stay; all as one value.
SELECT json_group_array(json_array(chunk_key, hex(content_hash), chunk_index, start_char, end_char)) FROM (
    SELECT chunk_key, content_hash, chunk_index, start_char, end_char
    FROM chunks WHERE document_key = :document_key ORDER BY chunk_index);

-- name: stored_visible
-- The same for one tenant.
SELECT json_group_array(json_array(chunk_key, hex(content_hash), chunk_index, start_char, end_char)) FROM (
    SELECT c.chunk_key, c.content_hash, c.chunk_index, c.start_char, c.end_char
    FROM documents d CROSS JOIN chunks c USING (document_key)
    WHERE d.document_key = :document_key AND d.namespace = :namespace
      AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
    ORDER BY c.chunk_index);

-- name: insert
-- Chunks that were not there before, in order; the keys of those of one statement follow each other.
INSERT INTO chunks (document_key, chunk_index, start_char, end_char, heading, body, content_hash)
SELECT :document_key, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
       unhex(value ->> 5)
FROM json_each(:chunks);

-- name: move
-- Chunks with the same content at another place.
UPDATE chunks SET chunk_index = m.value ->> 1, start_char = m.value ->> 2, end_char = m.value ->> 3
FROM json_each(:moved) m
WHERE chunk_key = m.value ->> 0;

-- name: delete_vectors
-- Their vectors, of every model; the log was told of them.
DELETE FROM vectors WHERE chunk_key IN (SELECT value FROM json_each(:chunk_keys));

-- name: delete
-- The chunks themselves, in one statement.
-- Each for itself would have a journal because of the trigger, and to end one takes the longer the
-- more the transaction has changed.
DELETE FROM chunks WHERE chunk_key IN (SELECT value FROM json_each(:chunk_keys));
