-- name: model
-- A model by its identity, and the schema of pgvector.
-- Then how many chunks and documents the namespace has, about.
SELECT m.model_id, m.dimensions,
       (SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'),
       (SELECT coalesce(sum(s.chunks), 0)::bigint FROM zibaldone.segments s
        WHERE s.namespace = %(namespace)s)
       + (SELECT count(*) FROM zibaldone.unposted u WHERE u.namespace = %(namespace)s),
       (SELECT coalesce(sum(u.documents), 0)::bigint FROM (
            SELECT documents FROM zibaldone.usage WHERE namespace = %(namespace)s
            UNION ALL
            SELECT documents FROM zibaldone.usage_changes WHERE namespace = %(namespace)s) u)
FROM zibaldone.models m WHERE m.identity = %(identity)s;

-- name: nearest
-- The nearest vectors whose documents pass a filter, by the model's index if there is one.
-- The marked numbers are put in as they are: an index is that of one model and one length of
-- vectors. The marked query is replaced by `eligible.document`.
SELECT o.chunk_key, 1 - (o.vector::public.halfvec(/*dimensions*/1)
                         OPERATOR(public.<=>) %(vector)s::public.halfvec)
FROM zibaldone.vectors o
WHERE o.model_id = /*model_id*/1 AND o.namespace = %(namespace)s
  AND (%(is_open)s AND NOT EXISTS (
        SELECT 1 FROM zibaldone.sources WHERE enabled = 0 AND namespace IN (%(namespace)s, '*'))
    OR EXISTS (/*eligible*/SELECT o.document_key))
ORDER BY o.vector::public.halfvec(/*dimensions*/1) OPERATOR(public.<=>) %(vector)s::public.halfvec
LIMIT %(limit)s;

-- name: nearest_of_few
-- The nearest vectors whose documents pass a filter, all of them compared, if these are few.
-- How many there are comes with each. Where they are more, that is all that comes.
-- OFFSET 0: they are read document by document. The planner would rather read the whole table.
-- The marked query is replaced by `eligible.documents`.
WITH eligible AS MATERIALIZED (
    SELECT document_key FROM (/*eligible*/VALUES (0::bigint)) d (document_key)
    LIMIT %(vectors_max)s + 1
), counted AS MATERIALIZED (
    SELECT count(*) AS vectors FROM (
        SELECT 1 FROM eligible JOIN zibaldone.vectors v USING (document_key)
        WHERE v.model_id = /*model_id*/1 LIMIT %(vectors_max)s + 1) few
)
SELECT counted.vectors, n.chunk_key, n.cosine
FROM counted LEFT JOIN LATERAL (
    SELECT v.chunk_key, v.cosine
    FROM eligible CROSS JOIN LATERAL (
        SELECT o.chunk_key, 1 - (o.vector::public.halfvec(/*dimensions*/1)
                                 OPERATOR(public.<=>) %(vector)s::public.halfvec) AS cosine
        FROM zibaldone.vectors o
        WHERE o.document_key = eligible.document_key AND o.namespace = %(namespace)s
          AND o.model_id = /*model_id*/1
        OFFSET 0) v
    WHERE counted.vectors <= %(vectors_max)s
    ORDER BY v.cosine DESC, v.chunk_key LIMIT %(limit)s
) n ON true;

-- name: nearest_of
-- The nearest of some chunks' vectors.
SELECT v.chunk_key, 1 - (v.vector::public.halfvec(/*dimensions*/1)
                         OPERATOR(public.<=>) %(vector)s::public.halfvec) AS cosine
FROM zibaldone.vectors v
WHERE v.namespace = %(namespace)s AND v.chunk_key = ANY(%(chunk_keys)s::bigint[])
  AND v.model_id = /*model_id*/1
ORDER BY cosine DESC, v.chunk_key LIMIT %(limit)s;

-- name: visible
-- Those of some chunks that the tenant sees.
SELECT c.chunk_key FROM zibaldone.chunks c
CROSS JOIN LATERAL (
    SELECT * FROM zibaldone.documents WHERE document_key = c.document_key OFFSET 0) d
WHERE c.chunk_key = ANY(%(chunk_keys)s::bigint[])
  AND d.namespace = %(namespace)s AND d.deleted_at_us IS NULL
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s);

-- name: coverage
-- How many of the caller's documents have no vectors yet or failed, and whether the model has any.
SELECT (SELECT count(*) FROM zibaldone.documents d
        WHERE d.vector_status IN ('pending', 'error') AND d.deleted_at_us IS NULL
          AND d.namespace = %(namespace)s AND d.document_id >= %(start)s
          AND (%(end)s::text IS NULL OR d.document_id < %(end)s)),
       EXISTS (SELECT 1 FROM zibaldone.models m
               WHERE m.identity = %(identity)s AND zibaldone.has_vectors(m.model_id));
