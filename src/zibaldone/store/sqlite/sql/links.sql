-- name: clear
-- What was kept of a document.
DELETE FROM document_links WHERE document_key = :document_key AND namespace = :namespace;

-- name: put
-- What is kept of a document from now on.
INSERT INTO document_links (document_key, kind, target, namespace, place)
SELECT :document_key, value ->> 0, value ->> 1, :namespace, key FROM json_each(:links);

-- name: out
-- The links of a document, in the order of its text.
SELECT kind, target FROM document_links
WHERE document_key = :document_key AND namespace = :namespace AND kind <= 1
ORDER BY place;

-- name: with_names
-- Live documents that have one of these names, the first ones of each, as JSON.
-- SQLite holds in memory what it sorts: here no more than is asked for, however many have the name.
SELECT n.value, (
    SELECT json_group_array(json_array(document_id, title))
    FROM (
        SELECT d.document_id, d.title
        FROM document_links l CROSS JOIN documents d ON d.document_key = l.document_key
        WHERE l.namespace = :namespace AND l.kind = 2 AND l.target = n.value
          AND d.namespace = :namespace AND d.deleted_at_us IS NULL AND d.document_id >= :start
          AND (:end IS NULL OR d.document_id < :end)
        ORDER BY d.document_id LIMIT :each))
FROM json_each(:names) n;

-- name: with_names_own
-- The same by the tenant's documents, for one that has few among many of others.
SELECT target, json_group_array(json_array(document_id, title) ORDER BY document_id) FROM (
    SELECT l.target, d.document_id, d.title,
           row_number() OVER (PARTITION BY l.target ORDER BY d.document_id) AS number
    FROM documents d
    CROSS JOIN document_links l ON l.document_key = d.document_key AND l.kind = 2
    WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL AND d.document_id >= :start
      AND d.document_id < coalesce(:end, x'') AND +l.target IN (SELECT value FROM json_each(:names)))
WHERE number <= :each
GROUP BY target;

-- name: pointing
-- Live documents that link to one of these targets.
SELECT d.document_id, d.title
FROM (
    SELECT DISTINCT l.document_key
    FROM json_each(:links) n
    CROSS JOIN document_links l
        ON l.namespace = :namespace AND l.kind = n.value ->> 0 AND l.target = n.value ->> 1) p
CROSS JOIN documents d ON d.document_key = p.document_key
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL AND d.document_id >= :start
  AND (:end IS NULL OR d.document_id < :end)
ORDER BY d.document_id
LIMIT :limit;

-- name: pointing_own
-- The same by the tenant's documents.
SELECT DISTINCT d.document_id, d.title
FROM documents d
CROSS JOIN json_each(:links) n
CROSS JOIN document_links l
    ON l.document_key = d.document_key AND l.kind = n.value ->> 0 AND l.target = n.value ->> 1
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL AND d.document_id >= :start
  AND d.document_id < coalesce(:end, x'')
ORDER BY d.document_id
LIMIT :limit;

-- name: rows_of
-- How many rows there are for these links or names in the namespace, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM json_each(:links) n
    CROSS JOIN document_links l
        ON l.namespace = :namespace AND l.kind = n.value ->> 0 AND l.target = n.value ->> 1
    LIMIT :limit);
