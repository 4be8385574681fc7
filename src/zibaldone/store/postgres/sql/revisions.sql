-- name: add
-- Keep a state that is about to be replaced.
INSERT INTO zibaldone.revisions (document_key, revision, namespace, title, tags, mime, metadata,
    content_chars, written_at_us, written_by, operation, body)
VALUES (%(document_key)s, %(revision)s, %(namespace)s, %(title)s, %(tags)s, %(mime)s, %(metadata)s,
    %(content_chars)s, %(written_at_us)s, %(written_by)s, %(operation)s, %(body)s);

-- name: page
-- Earlier states, newest first, without bodies.
SELECT r.revision, r.title, r.tags, r.mime, r.metadata, r.content_chars, r.written_at_us,
       r.written_by, r.operation
FROM zibaldone.documents d JOIN zibaldone.revisions r USING (document_key)
WHERE d.namespace = %(namespace)s AND d.document_key = %(document_key)s
  AND d.document_id >= %(tenant_start)s
  AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s)
  AND r.revision < %(before)s
ORDER BY r.revision DESC
LIMIT %(limit)s;

-- name: get
-- One earlier state, with its body.
SELECT r.revision, r.title, r.tags, r.mime, r.metadata, r.content_chars, r.written_at_us,
       r.written_by, r.operation, r.body
FROM zibaldone.documents d JOIN zibaldone.revisions r USING (document_key)
WHERE d.namespace = %(namespace)s AND d.document_key = %(document_key)s
  AND d.document_id >= %(tenant_start)s
  AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s)
  AND r.revision = %(revision)s;
