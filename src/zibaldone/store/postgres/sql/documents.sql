-- name: get
-- One document by id, also a deleted one.
SELECT d.document_key, d.document_id, d.parent_id, d.title, d.tags, d.mime, d.metadata, d.revision,
       d.created_at_us, d.updated_at_us, d.updated_by, d.operation, d.deleted_at_us, d.source_id,
       d.pk, d.vector_status, d.vector_error, b.body
FROM zibaldone.documents d JOIN zibaldone.bodies b USING (document_key)
WHERE d.namespace = %(namespace)s AND d.document_id = %(document_id)s
  AND d.document_id >= %(tenant_start)s
  AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s);

-- name: get_locked
-- The same for a writer: nobody else changes it until the transaction ends.
-- Where the row was locked by others, a later one is returned than the statement began with, beside
-- the body it began with. That fits: who changes a body locks the id first, and that is ours.
SELECT d.document_key, d.document_id, d.parent_id, d.title, d.tags, d.mime, d.metadata, d.revision,
       d.created_at_us, d.updated_at_us, d.updated_by, d.operation, d.deleted_at_us, d.source_id,
       d.pk, d.vector_status, d.vector_error, b.body
FROM zibaldone.documents d JOIN zibaldone.bodies b USING (document_key)
WHERE d.namespace = %(namespace)s AND d.document_id = %(document_id)s
  AND d.document_id >= %(tenant_start)s
  AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s)
FOR NO KEY UPDATE OF d;

-- name: peek
-- The same with the beginning of its body. Of a long one, PostgreSQL reads no more than that.
SELECT d.document_key, d.document_id, d.parent_id, d.title, d.tags, d.mime, d.metadata, d.revision,
       d.created_at_us, d.updated_at_us, d.updated_by, d.operation, d.deleted_at_us, d.source_id,
       d.pk, d.vector_status, d.vector_error, d.content_chars,
       substr(b.body, 1, %(chars_max)s::integer)
FROM zibaldone.documents d JOIN zibaldone.bodies b USING (document_key)
WHERE d.namespace = %(namespace)s AND d.document_id = %(document_id)s
  AND d.document_id >= %(tenant_start)s
  AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s);

-- name: heads
-- A page of live documents in byte order, by range: the cost does not depend on the depth.
SELECT document_id, parent_id, title, tags, revision
FROM zibaldone.documents
WHERE deleted_at_us IS NULL AND namespace = %(namespace)s
  AND document_id >= %(start)s AND document_id > %(after)s AND document_id < %(end)s
ORDER BY document_id
LIMIT %(limit)s;

-- name: heads_open
-- The same where the prefix has no upper bound.
SELECT document_id, parent_id, title, tags, revision
FROM zibaldone.documents
WHERE deleted_at_us IS NULL AND namespace = %(namespace)s
  AND document_id >= %(start)s AND document_id > %(after)s
ORDER BY document_id
LIMIT %(limit)s;

-- name: folders
-- The folders one level below a prefix, each with the number of live documents below it.
SELECT substr(document_id, 1, %(depth)s::integer + strpos(substr(document_id, %(depth)s::integer + 1), '/')) AS folder, count(*)
FROM zibaldone.documents
WHERE deleted_at_us IS NULL AND namespace = %(namespace)s
  AND document_id >= %(start)s AND document_id < %(end)s AND strpos(substr(document_id, %(depth)s::integer + 1), '/') > 0
GROUP BY folder
ORDER BY folder
LIMIT %(limit)s;

-- name: heads_here
-- A page of the live documents at one level, in byte order.
SELECT document_id, parent_id, title, tags, revision
FROM zibaldone.documents
WHERE deleted_at_us IS NULL AND namespace = %(namespace)s
  AND document_id >= %(start)s AND document_id < %(end)s AND strpos(substr(document_id, %(depth)s::integer + 1), '/') = 0
ORDER BY document_id
LIMIT %(limit)s;

-- name: recent
-- A page of live documents by the time they were written, the newest first.
SELECT document_id, parent_id, title, tags, revision, updated_at_us
FROM zibaldone.documents
WHERE deleted_at_us IS NULL AND namespace = %(namespace)s
  AND (updated_at_us, document_id) < (%(until)s, %(last_id)s) AND updated_at_us >= %(since)s
  AND document_id >= %(start)s AND (%(end)s::text IS NULL OR document_id < %(end)s)
ORDER BY updated_at_us DESC, document_id DESC
LIMIT %(limit)s OFFSET %(offset)s;

-- name: deleted
-- A page of deleted documents by the time of that, the newest first.
SELECT document_id, parent_id, title, tags, revision, deleted_at_us
FROM zibaldone.documents
WHERE deleted_at_us IS NOT NULL AND namespace = %(namespace)s
  AND (deleted_at_us, document_id) < (%(until)s, %(last_id)s) AND deleted_at_us >= %(since)s
  AND document_id >= %(start)s AND (%(end)s::text IS NULL OR document_id < %(end)s)
ORDER BY deleted_at_us DESC, document_id DESC
LIMIT %(limit)s;

-- name: id_at_offset
-- The id that stands just before a page; walks the index of live ids.
SELECT document_id FROM zibaldone.documents
WHERE deleted_at_us IS NULL AND namespace = %(namespace)s
  AND document_id >= %(start)s AND document_id < %(end)s
ORDER BY document_id
LIMIT 1 OFFSET %(offset)s;

-- name: id_at_offset_open
-- The same where the prefix has no upper bound.
SELECT document_id FROM zibaldone.documents
WHERE deleted_at_us IS NULL AND namespace = %(namespace)s AND document_id >= %(start)s
ORDER BY document_id
LIMIT 1 OFFSET %(offset)s;

-- name: insert
-- A new id; its storage key comes back, or nothing where the id exists. With it: its source.
INSERT INTO zibaldone.documents (namespace, document_id, source_id, parent_id, title, tags, mime,
    metadata, pk, revision, content_hash, content_chars, created_at_us, updated_at_us,
    deleted_at_us, updated_by, operation, vector_status, vector_error, chunking_version)
VALUES (%(namespace)s, %(document_id)s, %(source_id)s, %(parent_id)s, %(title)s, %(tags)s, %(mime)s,
    %(metadata)s, %(pk)s, %(revision)s, %(content_hash)s, %(content_chars)s, %(created_at_us)s,
    %(updated_at_us)s, %(deleted_at_us)s, %(updated_by)s, %(operation)s, %(vector_status)s,
    %(vector_error)s,
    (SELECT chunking_version FROM zibaldone.sources WHERE source_id = %(source_id)s))
ON CONFLICT (namespace, document_id) DO NOTHING
RETURNING document_key,
    (SELECT name FROM zibaldone.sources s WHERE s.source_id = documents.source_id),
    (SELECT definition FROM zibaldone.sources s WHERE s.source_id = documents.source_id);

-- name: insert_body
-- The body of a new id.
INSERT INTO zibaldone.bodies (document_key, namespace, body)
VALUES (%(document_key)s, %(namespace)s, %(body)s);

-- name: replace
-- The next state of a document, if it still is in the state that was read; what insert gives.
UPDATE zibaldone.documents SET source_id = %(source_id)s, parent_id = %(parent_id)s,
    title = %(title)s, tags = %(tags)s, mime = %(mime)s, metadata = %(metadata)s, pk = %(pk)s,
    revision = %(revision)s, content_hash = %(content_hash)s, content_chars = %(content_chars)s,
    created_at_us = %(created_at_us)s, updated_at_us = %(updated_at_us)s,
    deleted_at_us = %(deleted_at_us)s, updated_by = %(updated_by)s, operation = %(operation)s,
    vector_status = %(vector_status)s, vector_error = %(vector_error)s,
    chunking_version = (
        SELECT chunking_version FROM zibaldone.sources WHERE source_id = %(source_id)s)
WHERE document_key = %(document_key)s AND namespace = %(namespace)s
  AND revision = %(replaced_revision)s
RETURNING document_key,
    (SELECT name FROM zibaldone.sources s WHERE s.source_id = documents.source_id),
    (SELECT definition FROM zibaldone.sources s WHERE s.source_id = documents.source_id);

-- name: is_taken
-- Whether the namespace has a document of this id, live or deleted.
SELECT EXISTS (
    SELECT 1 FROM zibaldone.documents
    WHERE namespace = %(namespace)s AND document_id = %(document_id)s
      AND document_id >= %(tenant_start)s
      AND (%(tenant_end)s::text IS NULL OR document_id < %(tenant_end)s));

-- name: rename
-- Another id for a document; everything else of it hangs on its key.
UPDATE zibaldone.documents SET document_id = %(document_id)s
WHERE document_key = %(document_key)s AND namespace = %(namespace)s;

-- name: replace_body
-- The next body of a document.
UPDATE zibaldone.bodies SET body = %(body)s
WHERE document_key = %(document_key)s AND namespace = %(namespace)s;

-- name: put_facets
-- What a live document can be filtered by.
INSERT INTO zibaldone.facets (document_key, namespace, created_us, score, post_type)
VALUES (%(document_key)s, %(namespace)s, %(created_us)s, %(score)s, %(post_type)s)
ON CONFLICT (document_key) DO UPDATE SET created_us = excluded.created_us,
    score = excluded.score, post_type = excluded.post_type;

-- name: delete_facets
-- Of a document that is gone.
DELETE FROM zibaldone.facets
WHERE document_key = %(document_key)s AND namespace = %(namespace)s;

-- name: put_tags
-- These are the tags of a document, and no others.
WITH gone AS (
    DELETE FROM zibaldone.document_tags
    WHERE document_key = %(document_key)s AND namespace = %(namespace)s
      AND tag <> ALL(%(tags)s::text[])
)
INSERT INTO zibaldone.document_tags (namespace, tag, document_key)
SELECT %(namespace)s, tag, %(document_key)s FROM unnest(%(tags)s::text[]) tag
ON CONFLICT DO NOTHING;
