-- name: statistics
-- In how many chunks each term is, and how many chunks there are (the empty term).
-- Then what has to be added to that because it is not folded yet; and, with a chunk, the terms of
-- chunks of the namespace without postings, if they are wanted, where `count` says how often the
-- chunk has the term.
SELECT NULL::bigint AS chunk_key, s.length, s.term::text, s.chunks AS count
FROM zibaldone.term_statistics s WHERE s.term = '' OR s.term = ANY(%(terms)s::text[])
UNION ALL
SELECT NULL, u.length, u.term, u.chunks
FROM zibaldone.unfolded(%(terms)s::text[], %(any_term)s::tsquery, %(namespace)s) u
UNION ALL
SELECT t.chunk_key, t.length, l.lexeme, cardinality(l.positions)
FROM zibaldone.unposted u JOIN zibaldone.chunk_terms t USING (chunk_key)
CROSS JOIN unnest(CASE WHEN t.terms @@ %(any_term)s::tsquery THEN t.terms END) l
WHERE %(with_unposted)s::boolean AND u.namespace = %(namespace)s
  AND (l.lexeme = ANY(%(terms)s::text[]) OR l.lexeme ^@ ANY(%(beginnings)s::text[]));

-- name: unposted_chunks
-- How many chunks of the namespace have no postings yet, up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM zibaldone.unposted WHERE namespace = %(namespace)s LIMIT %(limit)s) listed;

-- name: own_chunks
-- How many chunks the namespace has. If they are few, those that are gone are not counted.
SELECT is_exact, CASE WHEN is_exact THEN (
    SELECT count(*) FROM zibaldone.chunk_terms t JOIN (
        SELECT unnest(chunk_keys) AS chunk_key FROM zibaldone.segments
        WHERE namespace = %(namespace)s
        UNION ALL SELECT chunk_key FROM zibaldone.unposted WHERE namespace = %(namespace)s
    ) known USING (chunk_key)) ELSE chunks END
FROM (
    SELECT chunks, chunks <= %(exact_max)s AS is_exact FROM (
        SELECT (SELECT coalesce(sum(chunks), 0)::bigint FROM zibaldone.segments
                WHERE namespace = %(namespace)s)
             + (SELECT count(*) FROM zibaldone.unposted WHERE namespace = %(namespace)s) AS chunks
    ) listed
) counted;

-- name: own
-- The chunks in a range of paths, up to a limit. OFFSET 0: they are looked up document by document.
SELECT c.chunk_key
FROM (SELECT document_key FROM zibaldone.documents
      WHERE namespace = %(namespace)s AND deleted_at_us IS NULL
        AND document_id >= %(start)s AND document_id < %(end)s
      LIMIT %(limit)s) d
CROSS JOIN LATERAL (
    SELECT chunk_key FROM zibaldone.chunks WHERE document_key = d.document_key OFFSET 0) c
LIMIT %(limit)s;

-- name: present
-- How many of these chunks are still there.
SELECT count(*) FROM zibaldone.chunk_terms
WHERE namespace = %(namespace)s AND chunk_key = ANY(%(chunk_keys)s::bigint[]);

-- name: sizes
-- How many entries each term has in the namespace.
SELECT term, (sum(octet_length(entries)) / 7)::bigint FROM zibaldone.postings
WHERE namespace = %(namespace)s AND term = ANY(%(terms)s::text[]) GROUP BY term;

-- name: postings
-- The chunks of the namespace that have a term.
SELECT term, base, entries FROM zibaldone.postings
WHERE namespace = %(namespace)s AND term = ANY(%(terms)s::text[]);

-- name: postings_begun
-- The same for all terms with one beginning. They are many, so that they are put together here.
SELECT b.start, p.base, string_agg(p.entries, '')
FROM unnest(%(beginnings)s::text[], %(ends)s::text[]) b (start, until)
JOIN zibaldone.postings p
    ON p.namespace = %(namespace)s AND p.term >= b.start AND p.term < b.until
GROUP BY b.start, p.base;

-- name: meeting
-- Those of some chunks that meet a demand.
SELECT chunk_key FROM zibaldone.chunk_terms
WHERE namespace = %(namespace)s AND chunk_key = ANY(%(chunk_keys)s::bigint[])
  AND terms @@ %(demand)s::tsquery;

-- name: places
-- Where some chunks have the terms of a query.
SELECT t.chunk_key, t.length, l.lexeme, l.positions
FROM zibaldone.chunk_terms t CROSS JOIN unnest(t.terms) l
WHERE t.namespace = %(namespace)s AND t.chunk_key = ANY(%(chunk_keys)s::bigint[])
  AND (l.lexeme = ANY(%(terms)s::text[]) OR l.lexeme ^@ ANY(%(beginnings)s::text[]));

-- name: matching
-- Which of these chunks match and are visible.
SELECT t.chunk_key
FROM zibaldone.chunk_terms t JOIN zibaldone.chunks c USING (chunk_key)
CROSS JOIN LATERAL (
    SELECT * FROM zibaldone.documents WHERE document_key = c.document_key OFFSET 0) d
WHERE t.chunk_key = ANY(%(chunk_keys)s::bigint[]) AND t.terms @@ %(demand)s::tsquery
  AND d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s);
