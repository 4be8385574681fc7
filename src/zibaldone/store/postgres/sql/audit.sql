-- name: add
-- One line of the audit trail.
INSERT INTO zibaldone.audit (at_us, namespace, principal, action, document_id, revision, outcome,
    request_id)
VALUES (%(at_us)s, %(namespace)s, %(principal)s, %(action)s, %(document_id)s, %(revision)s,
    %(outcome)s, %(request_id)s);

-- name: page
-- The newest lines.
SELECT at_us, principal, action, document_id, outcome, revision, request_id FROM zibaldone.audit
WHERE namespace = %(namespace)s AND document_id >= %(tenant_start)s
  AND (%(tenant_end)s::text IS NULL OR document_id < %(tenant_end)s)
ORDER BY audit_key DESC LIMIT %(limit)s;

-- name: page_of_document
-- The newest lines about one document.
SELECT at_us, principal, action, document_id, outcome, revision, request_id FROM zibaldone.audit
WHERE namespace = %(namespace)s AND document_id = %(document_id)s
  AND document_id >= %(tenant_start)s
  AND (%(tenant_end)s::text IS NULL OR document_id < %(tenant_end)s)
ORDER BY audit_key DESC LIMIT %(limit)s;
