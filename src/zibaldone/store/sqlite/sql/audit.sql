-- name: add
-- One line of the audit trail.
INSERT INTO audit (at_us, namespace, principal, action, document_id, revision, outcome, request_id)
VALUES (:at_us, :namespace, :principal, :action, :document_id, :revision, :outcome, :request_id);

-- name: page
-- The newest lines among the last of the table (the + keeps the index, and a sort, out of it).
SELECT at_us, principal, action, document_id, outcome, revision, request_id FROM audit
WHERE +namespace = :namespace AND audit_key > (SELECT max(audit_key) FROM audit) - :looked_at
  AND document_id >= :tenant_start AND (:tenant_end IS NULL OR document_id < :tenant_end)
ORDER BY audit_key DESC LIMIT :limit;

-- name: page_further
-- The same where these are too few: by the index, without a look at what others wrote.
SELECT at_us, principal, action, document_id, outcome, revision, request_id FROM audit
WHERE audit_key IN (
    SELECT audit_key FROM audit INDEXED BY audit_by_document
    WHERE namespace = :namespace
      AND document_id >= :tenant_start AND document_id < coalesce(:tenant_end, x'')
    ORDER BY audit_key DESC LIMIT :limit)
ORDER BY audit_key DESC;

-- name: page_of_document
-- The newest lines about one document.
SELECT at_us, principal, action, document_id, outcome, revision, request_id FROM audit
WHERE namespace = :namespace AND document_id = :document_id
  AND document_id >= :tenant_start AND (:tenant_end IS NULL OR document_id < :tenant_end)
ORDER BY audit_key DESC LIMIT :limit;
