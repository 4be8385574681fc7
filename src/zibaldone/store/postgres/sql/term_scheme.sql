-- name: progress
-- How far the terms are made anew.
SELECT version, through, last FROM zibaldone.term_scheme;

-- name: begin
-- All chunks that are there are to be looked at, unless they were for a later version.
UPDATE zibaldone.term_scheme SET version = %(version)s, through = 0,
    last = (SELECT coalesce(max(chunk_key), 0) FROM zibaldone.chunks)
WHERE version < %(version)s;

-- name: advance
-- A page was looked at; not if another process was faster.
UPDATE zibaldone.term_scheme SET through = %(through)s::bigint
WHERE version = %(version)s AND through = %(before)s RETURNING version;

-- name: page
-- Chunks with all that their terms are made of, in the order of their keys.
SELECT c.chunk_key, d.title, c.heading, c.body
FROM zibaldone.chunks c JOIN zibaldone.documents d USING (document_key)
WHERE c.chunk_key > %(after)s AND c.chunk_key <= %(last)s ORDER BY c.chunk_key LIMIT %(limit)s;

-- name: put
-- Chunks that are gone by now are left out.
INSERT INTO zibaldone.new_terms (chunk_key, namespace, length, terms)
SELECT c.chunk_key, c.namespace, n.length, n.terms::tsvector
FROM unnest(%(chunk_keys)s::bigint[], %(lengths)s::bigint[], %(terms)s::text[])
    n (chunk_key, length, terms)
JOIN zibaldone.chunks c USING (chunk_key)
ON CONFLICT (chunk_key) DO UPDATE SET length = excluded.length, terms = excluded.terms;
