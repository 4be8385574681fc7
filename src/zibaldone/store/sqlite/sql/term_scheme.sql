-- name: progress
-- How far the terms are made anew.
SELECT version, through, last FROM term_scheme;

-- name: begin
-- All chunks that are there are to be looked at, unless they were for a later version.
UPDATE term_scheme SET version = :version, through = 0,
    last = (SELECT coalesce(max(chunk_key), 0) FROM chunks)
WHERE version < :version;

-- name: advance
-- A page was looked at; not if another process was faster.
UPDATE term_scheme SET through = :through
WHERE version = :version AND through IS :before;

-- name: page
-- Chunks with all that their terms are made of, in the order of their keys.
SELECT c.chunk_key, d.title, c.heading, c.body
FROM chunks c CROSS JOIN documents d USING (document_key)
WHERE c.chunk_key > :after AND c.chunk_key <= :last ORDER BY c.chunk_key LIMIT :limit;

-- name: present
-- Those of these chunks that are still there and have terms to be replaced.
SELECT c.chunk_key FROM json_each(:chunk_keys) k CROSS JOIN chunks c ON c.chunk_key = k.value
WHERE NOT EXISTS (SELECT 1 FROM unsettled_terms u WHERE u.chunk_key = c.chunk_key);
