-- name: clear
-- What was kept of a document.
DELETE FROM zibaldone.document_links WHERE document_key = %(document_key)s AND namespace = %(namespace)s;

-- name: put
-- What is kept of a document from now on.
INSERT INTO zibaldone.document_links (document_key, kind, target, namespace, place)
SELECT %(document_key)s, n.kind, n.target, %(namespace)s, n.place
FROM unnest(%(kinds)s::bigint[], %(targets)s::text[]) WITH ORDINALITY n (kind, target, place);

-- name: out
-- The links of a document, in the order of its text.
SELECT kind, target FROM zibaldone.document_links
WHERE document_key = %(document_key)s AND namespace = %(namespace)s AND kind <= 1
ORDER BY place;

-- name: with_names
-- Live documents that have one of these names, the first ones of each.
-- By the names: a join could be planned as if a namespace that has grown fast were empty.
SELECT target, document_id, title FROM (
    SELECT l.target, d.document_id, d.title,
           row_number() OVER (PARTITION BY l.target ORDER BY d.document_id) AS number
    FROM zibaldone.document_links l
    CROSS JOIN LATERAL (
        SELECT document_id, title FROM zibaldone.documents
        WHERE document_key = l.document_key
          AND namespace = %(namespace)s AND deleted_at_us IS NULL AND document_id >= %(start)s
          AND (%(end)s::text IS NULL OR document_id < %(end)s)
        OFFSET 0) d
    WHERE l.namespace = %(namespace)s AND l.kind = 2 AND l.target = ANY(%(targets)s::text[])) named
WHERE number <= %(each)s
ORDER BY document_id;

-- name: with_names_own
-- The same by the tenant's documents, for one that has few among many of others.
SELECT target, document_id, title FROM (
    SELECT l.target, d.document_id, d.title,
           row_number() OVER (PARTITION BY l.target ORDER BY d.document_id) AS number
    FROM (
        SELECT document_key, document_id, title FROM zibaldone.documents
        WHERE namespace = %(namespace)s AND deleted_at_us IS NULL AND document_id >= %(start)s
          AND (%(end)s::text IS NULL OR document_id < %(end)s)
        OFFSET 0) d
    CROSS JOIN LATERAL (
        SELECT target FROM zibaldone.document_links
        WHERE document_key = d.document_key AND kind = 2 AND target = ANY(%(targets)s::text[])
          AND namespace = %(namespace)s
        OFFSET 0) l) named
WHERE number <= %(each)s
ORDER BY document_id;

-- name: pointing
-- Live documents that link to one of these targets, by the targets.
SELECT DISTINCT d.document_id, d.title
FROM unnest(%(kinds)s::bigint[], %(targets)s::text[]) n (kind, target)
CROSS JOIN LATERAL (
    SELECT document_key FROM zibaldone.document_links
    WHERE namespace = %(namespace)s AND kind = n.kind AND target = n.target
    OFFSET 0) l
CROSS JOIN LATERAL (
    SELECT document_id, title FROM zibaldone.documents
    WHERE document_key = l.document_key
      AND namespace = %(namespace)s AND deleted_at_us IS NULL AND document_id >= %(start)s
      AND (%(end)s::text IS NULL OR document_id < %(end)s)
    OFFSET 0) d
ORDER BY d.document_id
LIMIT %(limit)s;

-- name: pointing_own
-- The same by the tenant's documents.
SELECT d.document_id, d.title
FROM (
    SELECT document_key, document_id, title FROM zibaldone.documents
    WHERE namespace = %(namespace)s AND deleted_at_us IS NULL AND document_id >= %(start)s
      AND (%(end)s::text IS NULL OR document_id < %(end)s)
    OFFSET 0) d
CROSS JOIN LATERAL (
    SELECT 1 FROM zibaldone.document_links l
    JOIN unnest(%(kinds)s::bigint[], %(targets)s::text[]) n (kind, target) USING (kind, target)
    WHERE l.document_key = d.document_key AND l.namespace = %(namespace)s
    LIMIT 1) pointing
ORDER BY d.document_id
LIMIT %(limit)s;

-- name: live
-- How many live documents the tenant has, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM zibaldone.documents
    WHERE namespace = %(namespace)s AND deleted_at_us IS NULL AND document_id >= %(start)s
      AND (%(end)s::text IS NULL OR document_id < %(end)s)
    LIMIT %(limit)s) live;

-- name: linked
-- How many links there are to these targets in the namespace, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM unnest(%(kinds)s::bigint[], %(targets)s::text[]) n (kind, target)
    CROSS JOIN LATERAL (
        SELECT 1 FROM zibaldone.document_links l
        WHERE l.namespace = %(namespace)s AND l.kind = n.kind AND l.target = n.target
        LIMIT %(limit)s) each
    LIMIT %(limit)s) linked;
