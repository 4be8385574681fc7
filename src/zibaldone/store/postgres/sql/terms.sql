-- name: add
-- The terms of new chunks. No posting names them yet.
WITH added AS (
    INSERT INTO zibaldone.chunk_terms (chunk_key, namespace, length, terms)
    SELECT c.chunk_key, c.namespace, n.length, n.terms::tsvector
    FROM unnest(%(chunk_keys)s::bigint[], %(lengths)s::bigint[], %(terms)s::text[])
        n (chunk_key, length, terms)
    JOIN zibaldone.chunks c USING (chunk_key)
    RETURNING namespace, chunk_key, length
)
INSERT INTO zibaldone.unposted (namespace, chunk_key, length)
SELECT namespace, chunk_key, length FROM added;

-- name: remove
-- The terms of chunks that go, kept until the statistics reflect it.
WITH gone AS (
    DELETE FROM zibaldone.chunk_terms WHERE chunk_key = ANY(%(chunk_keys)s::bigint[])
    RETURNING chunk_key, namespace, length, terms
)
INSERT INTO zibaldone.removed_terms (chunk_key, namespace, length, terms)
SELECT chunk_key, namespace, length, terms FROM gone;
