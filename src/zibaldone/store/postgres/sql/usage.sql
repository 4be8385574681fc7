-- name: add
-- What a transaction adds to its namespace.
INSERT INTO zibaldone.usage_changes (namespace, documents, revisions, bytes)
VALUES (%(namespace)s, %(documents)s, %(revisions)s, %(bytes)s);

-- name: held
-- What a namespace holds.
SELECT coalesce(sum(documents), 0)::bigint, coalesce(sum(revisions), 0)::bigint,
       coalesce(sum(bytes), 0)::bigint
FROM (
    SELECT documents, revisions, bytes FROM zibaldone.usage WHERE namespace = %(namespace)s
    UNION ALL
    SELECT documents, revisions, bytes FROM zibaldone.usage_changes
    WHERE namespace = %(namespace)s
) counted;

-- name: all
-- What each namespace holds.
SELECT namespace, sum(documents)::bigint, sum(revisions)::bigint, sum(bytes)::bigint
FROM (
    SELECT namespace, documents, revisions, bytes FROM zibaldone.usage
    UNION ALL
    SELECT namespace, documents, revisions, bytes FROM zibaldone.usage_changes
) counted
GROUP BY namespace ORDER BY namespace;
