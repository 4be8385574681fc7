-- name: add
-- Keep a state that is about to be replaced.
INSERT INTO revisions (document_key, revision, title, tags, mime, metadata, content_chars,
    written_at_us, written_by, operation, body)
VALUES (:document_key, :revision, :title, :tags, :mime, :metadata, :content_chars,
    :written_at_us, :written_by, :operation, :body);

-- name: page
-- Earlier states, newest first, without bodies.
SELECT r.revision, r.title, r.tags, r.mime, r.metadata, r.content_chars, r.written_at_us,
       r.written_by, r.operation
FROM documents d JOIN revisions r USING (document_key)
WHERE d.namespace = :namespace AND d.document_key = :document_key
  AND d.document_id >= :tenant_start AND (:tenant_end IS NULL OR d.document_id < :tenant_end)
  AND r.revision < :before
ORDER BY r.revision DESC
LIMIT :limit;

-- name: get
-- One earlier state, with its body.
SELECT r.revision, r.title, r.tags, r.mime, r.metadata, r.content_chars, r.written_at_us,
       r.written_by, r.operation, r.body
FROM documents d JOIN revisions r USING (document_key)
WHERE d.namespace = :namespace AND d.document_key = :document_key
  AND d.document_id >= :tenant_start AND (:tenant_end IS NULL OR d.document_id < :tenant_end)
  AND r.revision = :revision;
