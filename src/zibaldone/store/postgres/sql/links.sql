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
SELECT target, document_id, title FROM (
    SELECT l.target, d.document_id, d.title,
           row_number() OVER (PARTITION BY l.target ORDER BY d.document_id) AS number
    FROM zibaldone.document_links l JOIN zibaldone.documents d USING (document_key)
    WHERE l.namespace = %(namespace)s AND l.kind = 2 AND l.target = ANY(%(names)s::text[])
      AND d.namespace = %(namespace)s AND d.deleted_at_us IS NULL AND d.document_id >= %(start)s
      AND (%(end)s::text IS NULL OR d.document_id < %(end)s)) named
WHERE number <= %(each)s
ORDER BY document_id;

-- name: pointing
-- Live documents that link to one of these targets.
SELECT DISTINCT d.document_id, d.title
FROM unnest(%(kinds)s::bigint[], %(targets)s::text[]) n (kind, target)
JOIN zibaldone.document_links l
    ON l.namespace = %(namespace)s AND l.kind = n.kind AND l.target = n.target
JOIN zibaldone.documents d ON d.document_key = l.document_key
WHERE d.namespace = %(namespace)s AND d.deleted_at_us IS NULL AND d.document_id >= %(start)s
  AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
ORDER BY d.document_id
LIMIT %(limit)s;
