-- name: get
-- One document by id, also a deleted one.
SELECT d.document_key, d.document_id, d.parent_id, d.title, d.tags, d.mime, d.metadata, d.revision,
       d.created_at_us, d.updated_at_us, d.updated_by, d.operation, d.deleted_at_us, d.source_id,
       d.pk, d.vector_status, d.vector_error, b.body
FROM documents d JOIN bodies b USING (document_key)
WHERE d.namespace = :namespace AND d.document_id = :document_id
  AND d.document_id >= :tenant_start AND (:tenant_end IS NULL OR d.document_id < :tenant_end);

-- name: peek
-- The same, with its body only where that is short.
SELECT d.document_key, d.document_id, d.parent_id, d.title, d.tags, d.mime, d.metadata, d.revision,
       d.created_at_us, d.updated_at_us, d.updated_by, d.operation, d.deleted_at_us, d.source_id,
       d.pk, d.vector_status, d.vector_error, d.content_chars,
       CASE WHEN d.content_chars <= :chars_max THEN b.body END
FROM documents d JOIN bodies b USING (document_key)
WHERE d.namespace = :namespace AND d.document_id = :document_id
  AND d.document_id >= :tenant_start AND (:tenant_end IS NULL OR d.document_id < :tenant_end);

-- name: heads
-- A page of live documents in byte order, by range: the cost does not depend on the depth.
SELECT document_id, parent_id, title, tags, revision
FROM documents
WHERE deleted_at_us IS NULL AND namespace = :namespace
  AND document_id >= :start AND document_id < :end
ORDER BY document_id
LIMIT :limit;

-- name: heads_open
-- The same where the prefix has no upper bound.
SELECT document_id, parent_id, title, tags, revision
FROM documents
WHERE deleted_at_us IS NULL AND namespace = :namespace
  AND document_id >= :start
ORDER BY document_id
LIMIT :limit;

-- name: listing
-- The same page as the JSON of a list, with the number of items, the last id, and are there more.
SELECT items, item_count, last_id, EXISTS (
    SELECT 1 FROM documents
    WHERE deleted_at_us IS NULL AND namespace = :namespace
      AND document_id > last_id AND document_id < :end)
FROM (
    SELECT json_group_array(json_object('document_id', document_id, 'parent_id', parent_id,
        'title', title, 'tags', json(tags), 'revision', revision)) AS items,
        count(*) AS item_count, max(document_id) AS last_id
    FROM (
        SELECT document_id, parent_id, title, tags, revision
        FROM documents
        WHERE deleted_at_us IS NULL AND namespace = :namespace
          AND document_id >= :start AND document_id < :end
        ORDER BY document_id
        LIMIT :limit));

-- name: listing_open
-- The same where the prefix has no upper bound.
SELECT items, item_count, last_id, EXISTS (
    SELECT 1 FROM documents
    WHERE deleted_at_us IS NULL AND namespace = :namespace AND document_id > last_id)
FROM (
    SELECT json_group_array(json_object('document_id', document_id, 'parent_id', parent_id,
        'title', title, 'tags', json(tags), 'revision', revision)) AS items,
        count(*) AS item_count, max(document_id) AS last_id
    FROM (
        SELECT document_id, parent_id, title, tags, revision
        FROM documents
        WHERE deleted_at_us IS NULL AND namespace = :namespace
          AND document_id >= :start
        ORDER BY document_id
        LIMIT :limit));

-- name: folders
-- The folders one level below a prefix, each with the number of live documents below it.
SELECT substr(document_id, 1, :depth + instr(substr(document_id, :depth + 1), '/')) AS folder, count(*)
FROM documents
WHERE deleted_at_us IS NULL AND namespace = :namespace
  AND document_id >= :start AND document_id < :end AND instr(substr(document_id, :depth + 1), '/') > 0
GROUP BY folder
ORDER BY folder
LIMIT :limit;

-- name: heads_here
-- A page of the live documents at one level, in byte order.
SELECT document_id, parent_id, title, tags, revision
FROM documents
WHERE deleted_at_us IS NULL AND namespace = :namespace
  AND document_id >= :start AND document_id < :end AND instr(substr(document_id, :depth + 1), '/') = 0
ORDER BY document_id
LIMIT :limit;

-- name: recent
-- A page of live documents by the time they were written, the newest first.
-- The index has all that is compared, so that only rows of the page are read.
SELECT document_id, parent_id, title, tags, revision, updated_at_us
FROM documents INDEXED BY documents_recent
WHERE deleted_at_us IS NULL AND namespace = :namespace
  AND (updated_at_us, document_id) < (:until, :last_id) AND updated_at_us >= :since
  AND document_id >= :start AND (:end IS NULL OR document_id < :end)
ORDER BY updated_at_us DESC, document_id DESC
LIMIT :limit OFFSET :offset;

-- name: recent_own
-- The same by the paths, for a tenant or folder with few documents among many of others.
SELECT document_id, parent_id, title, tags, revision, updated_at_us
FROM documents INDEXED BY documents_live
WHERE deleted_at_us IS NULL AND namespace = :namespace
  AND (updated_at_us, document_id) < (:until, :last_id) AND updated_at_us >= :since
  AND document_id >= :start AND document_id < coalesce(:end, x'')
ORDER BY updated_at_us DESC, document_id DESC
LIMIT :limit OFFSET :offset;

-- name: counted
-- How many live documents a range has, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM documents
    WHERE deleted_at_us IS NULL AND namespace = :namespace
      AND document_id >= :start AND document_id < coalesce(:end, x'')
    LIMIT :limit);

-- name: all
-- How many live documents the namespace has.
SELECT documents FROM usage WHERE namespace = :namespace;

-- name: deleted
-- A page of deleted documents by the time of that, the newest first.
SELECT document_id, parent_id, title, tags, revision, deleted_at_us
FROM documents
WHERE deleted_at_us IS NOT NULL AND namespace = :namespace
  AND (deleted_at_us, document_id) < (:until, :last_id) AND deleted_at_us >= :since
  AND document_id >= :start AND (:end IS NULL OR document_id < :end)
ORDER BY deleted_at_us DESC, document_id DESC
LIMIT :limit;

-- name: id_at_offset
-- The id that stands just before a page; walks the index of live ids only, never the rows.
SELECT document_id FROM documents
WHERE deleted_at_us IS NULL AND namespace = :namespace
  AND document_id >= :start AND document_id < :end
ORDER BY document_id
LIMIT 1 OFFSET :offset;

-- name: id_at_offset_open
-- The same where the prefix has no upper bound.
SELECT document_id FROM documents
WHERE deleted_at_us IS NULL AND namespace = :namespace AND document_id >= :start
ORDER BY document_id
LIMIT 1 OFFSET :offset;

-- name: insert
-- A new id; its storage key comes back.
INSERT INTO documents (namespace, document_id, source_id, parent_id, title, tags, mime, metadata, pk,
    revision, content_hash, content_chars, created_at_us, updated_at_us, deleted_at_us, updated_by,
    operation, vector_status, vector_error, chunking_version)
VALUES (:namespace, :document_id, :source_id, :parent_id, :title, :tags, :mime, :metadata, :pk,
    :revision, :content_hash, :content_chars, :created_at_us, :updated_at_us, :deleted_at_us,
    :updated_by, :operation, :vector_status, :vector_error,
    (SELECT chunking_version FROM sources WHERE source_id = :source_id))
RETURNING document_key;

-- name: insert_body
-- The body of a new id.
INSERT INTO bodies (document_key, body) VALUES (:document_key, :body);

-- name: replace
-- The next state of a document, if it still is in the state that was read; its key comes back.
UPDATE documents SET source_id = :source_id, parent_id = :parent_id, title = :title, tags = :tags,
    mime = :mime, metadata = :metadata, pk = :pk, revision = :revision,
    content_hash = :content_hash, content_chars = :content_chars, created_at_us = :created_at_us,
    updated_at_us = :updated_at_us, deleted_at_us = :deleted_at_us, updated_by = :updated_by,
    operation = :operation, vector_status = :vector_status, vector_error = :vector_error,
    chunking_version = (SELECT chunking_version FROM sources WHERE source_id = :source_id)
WHERE document_key = :document_key AND namespace = :namespace AND revision = :replaced_revision
RETURNING document_key;

-- name: is_taken
-- Whether the namespace has a document of this id, live or deleted.
SELECT EXISTS (
    SELECT 1 FROM documents WHERE namespace = :namespace AND document_id = :document_id
      AND document_id >= :tenant_start AND (:tenant_end IS NULL OR document_id < :tenant_end));

-- name: rename
-- Another id for a document; everything else of it hangs on its key.
UPDATE documents SET document_id = :document_id
WHERE document_key = :document_key AND namespace = :namespace;

-- name: replace_body
-- The next body of a document.
UPDATE bodies SET body = :body WHERE document_key = :document_key;

-- name: put_facets
-- What a live document can be filtered by.
INSERT OR REPLACE INTO facets (document_key, created_us, score, post_type)
VALUES (:document_key, :created_us, :score, :post_type);

-- name: delete_facets
-- Of a document that is gone.
DELETE FROM facets WHERE document_key = :document_key;

-- name: delete_tags
-- Forget a document's tags.
DELETE FROM document_tags WHERE document_key = :document_key;

-- name: put_tag
-- One tag of a document.
INSERT INTO document_tags (tag, document_key) VALUES (:tag, :document_key);
