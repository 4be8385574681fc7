-- name: add
-- Keep a state that is about to be replaced.
INSERT INTO revisions (document_key, revision, title, tags, mime, metadata, content_chars,
    written_at_us, written_by, operation, body)
VALUES (:document_key, :revision, :title, :tags, :mime, :metadata, :content_chars,
    :written_at_us, :written_by, :operation, :body);

-- name: page
-- Earlier states, newest first, without bodies.
SELECT revision, title, tags, mime, metadata, content_chars, written_at_us, written_by, operation
FROM revisions
WHERE document_key = :document_key AND revision < :before
ORDER BY revision DESC
LIMIT :limit;

-- name: get
-- One earlier state, with its body.
SELECT revision, title, tags, mime, metadata, content_chars, written_at_us, written_by, operation,
       body
FROM revisions
WHERE document_key = :document_key AND revision = :revision;
