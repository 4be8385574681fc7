-- name: document
-- Nobody else changes the document until this transaction ends. What is read after it is current.
SELECT document_key FROM zibaldone.documents
WHERE namespace = %(namespace)s AND document_id = %(document_id)s
  AND document_id >= %(tenant_start)s
  AND (%(tenant_end)s::text IS NULL OR document_id < %(tenant_end)s)
FOR NO KEY UPDATE;

-- name: id
-- The same for an id that does not exist: nobody else inserts it.
SELECT pg_advisory_xact_lock(hashtextextended(
    'zibaldone/document/' || %(namespace)s::text || '/' || %(document_id)s::text, 0));

-- name: documents
-- Documents by their keys, in one order, so that two that do so do not wait in a circle.
SELECT document_key FROM zibaldone.documents
WHERE document_key = ANY(%(document_keys)s::bigint[])
ORDER BY document_key FOR NO KEY UPDATE;

-- name: source
-- Writers share it. Whoever changes how a source is cut has to wait for them, and they for it.
SELECT pg_advisory_xact_lock_shared(
    hashtextextended('zibaldone/source/' || %(source_id)s::bigint, 0));

-- name: source_alone
-- For whoever changes how it is cut.
SELECT pg_advisory_xact_lock(hashtextextended('zibaldone/source/' || %(source_id)s::bigint, 0));

-- name: usage
-- Where there are quotas, writers of one namespace run one after the other: each counts the last.
SELECT pg_advisory_xact_lock(hashtextextended('zibaldone/usage/' || %(namespace)s::text, 0));

-- name: leases
-- Leases of a kind are given one after the other where one depends on what others hold.
SELECT pg_advisory_xact_lock(hashtextextended('zibaldone/leases/' || %(kind)s::text, 0));

-- name: models
-- Claims are decided one after the other, in all processes.
SELECT pg_advisory_xact_lock(hashtextextended('zibaldone/models', 0));

-- name: try_folding
-- One process folds at a time; the others have nothing to do then.
SELECT pg_try_advisory_xact_lock(hashtextextended('zibaldone/folding', 0));

-- name: try_posting
-- The same for the keyword index, whose transactions are longer.
SELECT pg_try_advisory_xact_lock(hashtextextended('zibaldone/posting', 0));
