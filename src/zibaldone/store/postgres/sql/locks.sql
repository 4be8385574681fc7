-- name: id
-- Nobody else inserts or replaces a document of this id until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended(
    'zibaldone/document/' || %(namespace)s::text || '/' || %(document_id)s::text, 0));

-- name: documents
-- Nobody else changes these documents. In one order, so that two that do so do not wait in a circle.
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

-- name: source_names
-- Sources are added one after the other: names of one namespace and of all may not be the same.
SELECT pg_advisory_xact_lock(hashtextextended('zibaldone/source names', 0));

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
