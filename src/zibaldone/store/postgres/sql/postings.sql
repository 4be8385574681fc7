-- name: post
-- Make a segment of chunks that no posting names, for each namespace, and count their terms.
-- One statement, and so one snapshot: a chunk either has its terms or was removed.
WITH batch AS (
    DELETE FROM zibaldone.unposted WHERE (namespace, chunk_key) IN (
        SELECT namespace, chunk_key FROM zibaldone.unposted ORDER BY chunk_key LIMIT %(limit)s)
    RETURNING chunk_key
), withdrawn AS (
    DELETE FROM zibaldone.removed_terms WHERE chunk_key IN (SELECT chunk_key FROM batch)
), made AS (
    INSERT INTO zibaldone.segments (namespace, chunks, chunk_keys)
    SELECT t.namespace, count(*), array_agg(t.chunk_key ORDER BY t.chunk_key)
    FROM batch JOIN zibaldone.chunk_terms t USING (chunk_key) GROUP BY t.namespace
    RETURNING segment, chunk_keys
), posted AS (
    INSERT INTO zibaldone.postings (namespace, term, segment, base, entries)
    SELECT t.namespace, l.lexeme COLLATE "C", m.segment, t.chunk_key >> 31 << 31,
           string_agg(int4send((t.chunk_key & 2147483647)::integer)
               || int2send(least(t.length, 32767)::smallint)
               || set_byte('\x00', 0, least(cardinality(l.positions), 255)), ''
               ORDER BY t.chunk_key)
    FROM made m CROSS JOIN unnest(m.chunk_keys) k (chunk_key)
    JOIN zibaldone.chunk_terms t USING (chunk_key) CROSS JOIN unnest(t.terms) l
    GROUP BY 1, 2, 3, 4
    RETURNING term, octet_length(entries) / 7 AS chunks
)
INSERT INTO zibaldone.term_statistics AS s (term, chunks, length)
SELECT term, sum(chunks), 0 FROM posted GROUP BY term
UNION ALL
SELECT '', count(*), coalesce(sum(t.length), 0)
FROM batch JOIN zibaldone.chunk_terms t USING (chunk_key)
ON CONFLICT (term) DO UPDATE SET chunks = s.chunks + excluded.chunks,
    length = s.length + excluded.length;

-- name: has_more
-- Whether there is more to post or to subtract.
SELECT EXISTS (SELECT 1 FROM zibaldone.unposted) OR EXISTS (SELECT 1 FROM zibaldone.removed_terms);

-- name: is_too_much
-- Whether there is more of it than is done at once.
SELECT EXISTS (SELECT 1 FROM zibaldone.unposted OFFSET %(posted_max)s)
    OR EXISTS (SELECT 1 FROM zibaldone.removed_terms OFFSET %(removed_max)s);

-- name: subtract
-- Take removed chunks out of the statistics. Those that were never counted wait to be posted.
WITH gone AS (
    DELETE FROM zibaldone.removed_terms WHERE chunk_key IN (
        SELECT r.chunk_key FROM zibaldone.removed_terms r
        WHERE NOT EXISTS (SELECT 1 FROM zibaldone.unposted u
                          WHERE u.namespace = r.namespace AND u.chunk_key = r.chunk_key)
        LIMIT %(limit)s)
    RETURNING namespace, length, terms
), wasted AS (
    INSERT INTO zibaldone.posting_waste AS w (namespace, chunks)
    SELECT namespace, count(*) FROM gone GROUP BY namespace
    ON CONFLICT (namespace) DO UPDATE SET chunks = w.chunks + excluded.chunks
)
INSERT INTO zibaldone.term_statistics AS s (term, chunks, length)
SELECT l.lexeme COLLATE "C", -count(*), 0 FROM gone CROSS JOIN unnest(gone.terms) l GROUP BY 1
UNION ALL
SELECT '', -count(*), -sum(length) FROM gone HAVING count(*) > 0
ON CONFLICT (term) DO UPDATE SET chunks = s.chunks + excluded.chunks,
    length = s.length + excluded.length;

-- name: mergeable
-- Segments of a namespace that have grown to be many of about the same size.
SELECT array_agg(segment ORDER BY segment) FROM (
    SELECT segment, namespace, floor(ln(chunks) / ln(%(many)s::integer)) AS size
    FROM zibaldone.segments WHERE chunks < %(chunks_max)s
) sized
GROUP BY namespace, size HAVING count(*) >= %(many)s::integer LIMIT 1;

-- name: merge
-- Make one segment of some, of what is left of their chunks.
WITH old AS (
    DELETE FROM zibaldone.segments WHERE segment = ANY(%(segments)s::bigint[])
    RETURNING chunk_keys
), emptied AS (
    DELETE FROM zibaldone.postings WHERE segment = ANY(%(segments)s::bigint[])
), made AS (
    INSERT INTO zibaldone.segments (namespace, chunks, chunk_keys)
    SELECT t.namespace, count(*), array_agg(t.chunk_key ORDER BY t.chunk_key)
    FROM old CROSS JOIN unnest(old.chunk_keys) k (chunk_key)
    JOIN zibaldone.chunk_terms t USING (chunk_key) GROUP BY t.namespace
    RETURNING segment, chunk_keys
)
INSERT INTO zibaldone.postings (namespace, term, segment, base, entries)
SELECT t.namespace, l.lexeme COLLATE "C", m.segment, t.chunk_key >> 31 << 31,
       string_agg(int4send((t.chunk_key & 2147483647)::integer)
           || int2send(least(t.length, 32767)::smallint)
           || set_byte('\x00', 0, least(cardinality(l.positions), 255)), ''
           ORDER BY t.chunk_key)
FROM made m CROSS JOIN unnest(m.chunk_keys) k (chunk_key)
JOIN zibaldone.chunk_terms t USING (chunk_key) CROSS JOIN unnest(t.terms) l
GROUP BY 1, 2, 3, 4;

-- name: wasteful
-- A namespace in which much of what is posted is gone.
SELECT w.namespace FROM zibaldone.posting_waste w
WHERE w.chunks >= %(chunks_min)s AND w.chunks * 4 >= (
    SELECT coalesce(sum(s.chunks), 0) FROM zibaldone.segments s WHERE s.namespace = w.namespace)
LIMIT 1;

-- name: stale_segment
-- A segment of a namespace of whose chunks many are gone.
SELECT s.segment FROM zibaldone.segments s
WHERE s.namespace = %(namespace)s AND s.chunks * 9 > 10 * (
    SELECT count(*) FROM unnest(s.chunk_keys) k (chunk_key)
    JOIN zibaldone.chunk_terms t USING (chunk_key))
ORDER BY s.segment LIMIT 1;

-- name: forget_waste
-- A namespace has no more of it, and no statistics of terms that nobody uses are kept.
WITH unused AS (
    DELETE FROM zibaldone.term_statistics WHERE chunks <= 0 AND term <> ''
)
DELETE FROM zibaldone.posting_waste WHERE namespace = %(namespace)s;

-- name: renewable
-- A segment with chunks that get other terms, when all of it was looked at.
SELECT s.segment FROM zibaldone.segments s CROSS JOIN zibaldone.term_scheme t
WHERE (t.through IS NULL OR s.chunk_keys[cardinality(s.chunk_keys)] <= t.through)
  AND EXISTS (SELECT 1 FROM unnest(s.chunk_keys) k (chunk_key)
              JOIN zibaldone.new_terms n USING (chunk_key))
ORDER BY s.segment LIMIT 1;

-- name: hold
-- Chunks of a segment that get other terms are not removed meanwhile.
SELECT count(*) FROM (
    SELECT 1 FROM zibaldone.chunk_terms t JOIN zibaldone.new_terms n USING (chunk_key)
    WHERE t.chunk_key = ANY(
        SELECT unnest(s.chunk_keys) FROM zibaldone.segments s WHERE s.segment = %(segment)s)
    ORDER BY t.chunk_key FOR UPDATE OF t) held;

-- name: recount
-- What other terms change in the statistics.
WITH changed AS MATERIALIZED (
    SELECT t.length AS old_length, t.terms AS old_terms, n.length, n.terms
    FROM zibaldone.segments s CROSS JOIN unnest(s.chunk_keys) k (chunk_key)
    JOIN zibaldone.chunk_terms t USING (chunk_key) JOIN zibaldone.new_terms n USING (chunk_key)
    WHERE s.segment = %(segment)s
)
INSERT INTO zibaldone.term_statistics AS s (term, chunks, length)
SELECT lexeme COLLATE "C", sum(change), 0 FROM (
    SELECT l.lexeme, 1 AS change FROM changed CROSS JOIN unnest(changed.terms) l
    UNION ALL
    SELECT l.lexeme, -1 FROM changed CROSS JOIN unnest(changed.old_terms) l
) counted GROUP BY 1 HAVING sum(change) <> 0
UNION ALL
SELECT '', 0, coalesce(sum(length - old_length), 0) FROM changed
ON CONFLICT (term) DO UPDATE SET chunks = s.chunks + excluded.chunks,
    length = s.length + excluded.length;

-- name: renew
-- Other terms take their place; the postings are to be made of them in the same transaction.
WITH taken AS (
    DELETE FROM zibaldone.new_terms WHERE chunk_key = ANY(
        SELECT unnest(s.chunk_keys) FROM zibaldone.segments s WHERE s.segment = %(segment)s)
    RETURNING chunk_key, length, terms
)
UPDATE zibaldone.chunk_terms t SET length = n.length, terms = n.terms
FROM taken n WHERE n.chunk_key = t.chunk_key;

-- name: forget_gone
-- New terms of chunks that are gone.
DELETE FROM zibaldone.new_terms n
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.chunk_terms t WHERE t.chunk_key = n.chunk_key);
