-- OFFSET 0 keeps a subquery apart: of the chunks that are asked for, each document is looked up by
-- its key. Where a namespace has grown since PostgreSQL last counted, the planner takes it for empty,
-- and would go through all of its documents, with all of these keys for each.

-- name: views
-- Chunks by key with what is shown of them, in one statement however many there are.
SELECT c.chunk_key, d.document_id, c.chunk_index, d.title, c.heading, c.body, c.start_char,
       d.source_id, s.name, d.metadata, d.tags, d.updated_at_us
FROM zibaldone.chunks c
CROSS JOIN LATERAL (
    SELECT * FROM zibaldone.documents WHERE document_key = c.document_key OFFSET 0) d
JOIN zibaldone.sources s USING (source_id)
WHERE c.chunk_key = ANY(%(chunk_keys)s::bigint[])
  AND d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s);

-- name: views_at
-- Chunks by document and number.
SELECT c.chunk_key, d.document_id, c.chunk_index, d.title, c.heading, c.body, c.start_char,
       d.source_id, s.name, d.metadata, d.tags, d.updated_at_us
FROM unnest(%(document_ids)s::text[], %(indexes)s::bigint[]) p (document_id, chunk_index)
JOIN zibaldone.documents d ON d.namespace = %(namespace)s AND d.document_id = p.document_id
JOIN zibaldone.chunks c ON c.document_key = d.document_key AND c.chunk_index = p.chunk_index
JOIN zibaldone.sources s USING (source_id)
WHERE d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s);

-- name: documents_of
-- The document of each of these chunks, without reading the chunks' texts.
SELECT c.chunk_key, d.document_id
FROM zibaldone.chunks c
CROSS JOIN LATERAL (
    SELECT * FROM zibaldone.documents WHERE document_key = c.document_key OFFSET 0) d
WHERE c.chunk_key = ANY(%(chunk_keys)s::bigint[])
  AND d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s);

-- name: source_names
-- Which source each of these documents is of.
SELECT d.document_id, s.name
FROM zibaldone.documents d JOIN zibaldone.sources s USING (source_id)
WHERE d.namespace = %(namespace)s AND d.document_id = ANY(%(document_ids)s::text[])
  AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s);

-- name: stored
-- What is stored of a document's chunks, to see which of them stay.
SELECT chunk_key, content_hash, chunk_index, start_char, end_char
FROM zibaldone.chunks WHERE document_key = %(document_key)s ORDER BY chunk_index;

-- name: stored_visible
-- The same for one tenant.
SELECT c.chunk_key, c.content_hash, c.chunk_index, c.start_char, c.end_char
FROM zibaldone.documents d JOIN zibaldone.chunks c USING (document_key)
WHERE d.document_key = %(document_key)s AND d.namespace = %(namespace)s
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
ORDER BY c.chunk_index;

-- name: insert
-- Chunks that were not there before; their keys come back with their places.
INSERT INTO zibaldone.chunks (document_key, namespace, chunk_index, start_char, end_char, heading,
    body, content_hash)
SELECT d.document_key, d.namespace, n.chunk_index, n.start_char, n.end_char, n.heading, n.body,
       n.content_hash
FROM zibaldone.documents d CROSS JOIN unnest(%(indexes)s::bigint[], %(starts)s::bigint[],
    %(ends)s::bigint[], %(headings)s::text[], %(bodies)s::text[], %(hashes)s::bytea[])
    n (chunk_index, start_char, end_char, heading, body, content_hash)
WHERE d.document_key = %(document_key)s
RETURNING chunk_index, chunk_key;

-- name: move
-- Chunks with the same content at another place.
UPDATE zibaldone.chunks c
SET chunk_index = m.chunk_index, start_char = m.start_char, end_char = m.end_char
FROM unnest(%(chunk_keys)s::bigint[], %(indexes)s::bigint[], %(starts)s::bigint[],
    %(ends)s::bigint[]) m (chunk_key, chunk_index, start_char, end_char)
WHERE c.chunk_key = m.chunk_key AND c.document_key = %(document_key)s;

-- name: delete_vectors
-- The vectors of chunks that go, of every model.
DELETE FROM zibaldone.vectors WHERE chunk_key = ANY(%(chunk_keys)s::bigint[]);

-- name: delete
-- The chunks themselves.
DELETE FROM zibaldone.chunks
WHERE chunk_key = ANY(%(chunk_keys)s::bigint[]) AND document_key = %(document_key)s;
