-- name: last_run
-- The last run of a sync of the source.
SELECT run, is_complete FROM zibaldone.pulled_runs WHERE source_id = %(source_id)s AND namespace = %(namespace)s;

-- name: begin
-- A run begins.
INSERT INTO zibaldone.pulled_runs (source_id, namespace, run, is_complete)
VALUES (%(source_id)s, %(namespace)s, %(run)s, 0)
ON CONFLICT (source_id) DO UPDATE SET run = excluded.run, is_complete = 0
WHERE pulled_runs.namespace = excluded.namespace;

-- name: finish
-- A run is complete.
UPDATE zibaldone.pulled_runs SET is_complete = 1
WHERE source_id = %(source_id)s AND namespace = %(namespace)s AND run = %(run)s;

-- name: require_run
-- The same for a run that is about to write: nobody begins another one before it is done.
SELECT run FROM zibaldone.pulled_runs
WHERE source_id = %(source_id)s AND namespace = %(namespace)s FOR UPDATE;

-- name: blocks
-- All blocks of a source.
SELECT block, rows, digest, first_key, is_settled FROM zibaldone.pulled_blocks
WHERE source_id = %(source_id)s AND namespace = %(namespace)s ORDER BY block;

-- name: rows
-- What is remembered of some rows.
SELECT r.document_id, r.block, r.mark, r.content
FROM zibaldone.pulled_rows r
WHERE r.source_id = %(source_id)s AND r.namespace = %(namespace)s
  AND r.document_id = ANY(%(document_ids)s::text[]);

-- name: count
-- How many rows are remembered of a source.
SELECT count(*) FROM zibaldone.pulled_rows WHERE source_id = %(source_id)s AND namespace = %(namespace)s;

-- name: count_lost
-- Rows that would be left without a block.
-- The numbers of blocks are found in steps, each a look into
-- the index: rows of blocks that are there are not read.
WITH RECURSIVE steps (block) AS (
    SELECT min(block) FROM zibaldone.pulled_rows WHERE source_id = %(source_id)s
    UNION ALL
    SELECT (SELECT min(r.block) FROM zibaldone.pulled_rows r
            WHERE r.source_id = %(source_id)s AND r.block > steps.block)
    FROM steps WHERE steps.block IS NOT NULL
)
SELECT count(*) FROM steps s JOIN zibaldone.pulled_rows r
    ON r.source_id = %(source_id)s AND r.block = s.block AND r.namespace = %(namespace)s
WHERE s.block = ANY(%(blocks)s::bigint[]) OR NOT EXISTS (
    SELECT 1 FROM zibaldone.pulled_blocks b WHERE b.source_id = %(source_id)s AND b.block = s.block);

-- name: lost
-- Rows without a block, found in the same way.
WITH RECURSIVE steps (block) AS (
    SELECT min(block) FROM zibaldone.pulled_rows WHERE source_id = %(source_id)s
    UNION ALL
    SELECT (SELECT min(r.block) FROM zibaldone.pulled_rows r
            WHERE r.source_id = %(source_id)s AND r.block > steps.block)
    FROM steps WHERE steps.block IS NOT NULL
)
SELECT r.document_id FROM steps s JOIN zibaldone.pulled_rows r
    ON r.source_id = %(source_id)s AND r.block = s.block AND r.namespace = %(namespace)s
WHERE NOT EXISTS (
    SELECT 1 FROM zibaldone.pulled_blocks b WHERE b.source_id = %(source_id)s AND b.block = s.block)
LIMIT %(limit)s;

-- name: put_rows
-- What is remembered of rows.
INSERT INTO zibaldone.pulled_rows (source_id, document_id, namespace, block, mark, content)
SELECT %(source_id)s, n.document_id, %(namespace)s, n.block, n.mark, n.content
FROM unnest(%(document_ids)s::text[], %(blocks)s::bigint[], %(marks)s::bigint[],
            %(contents)s::bytea[]) n (document_id, block, mark, content)
ON CONFLICT (source_id, document_id)
DO UPDATE SET block = excluded.block, mark = excluded.mark, content = excluded.content
WHERE pulled_rows.namespace = excluded.namespace;

-- name: move_rows
-- Rows that are as they were belong to another block.
UPDATE zibaldone.pulled_rows SET block = %(block)s
WHERE source_id = %(source_id)s AND namespace = %(namespace)s
  AND document_id = ANY(%(document_ids)s::text[]);

-- name: remove_rows
-- Rows that are gone.
DELETE FROM zibaldone.pulled_rows
WHERE source_id = %(source_id)s AND namespace = %(namespace)s
  AND document_id = ANY(%(document_ids)s::text[]);

-- name: put_block
-- A block and what its rows are compared by.
INSERT INTO zibaldone.pulled_blocks (source_id, block, namespace, rows, digest, first_key, is_settled)
VALUES (%(source_id)s, %(block)s, %(namespace)s, %(rows)s, %(digest)s, %(first_key)s, %(is_settled)s)
ON CONFLICT (source_id, block) DO UPDATE SET rows = excluded.rows, digest = excluded.digest,
    first_key = excluded.first_key, is_settled = excluded.is_settled
WHERE pulled_blocks.namespace = excluded.namespace;

-- name: drop_blocks
-- Blocks that are no longer found in the source.
DELETE FROM zibaldone.pulled_blocks
WHERE source_id = %(source_id)s AND namespace = %(namespace)s
  AND block = ANY(%(blocks)s::bigint[]);
