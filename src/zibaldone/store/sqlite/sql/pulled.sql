-- name: last_run
-- The last run of a sync of the source.
SELECT run, is_complete FROM pulled_runs WHERE source_id = :source_id AND namespace = :namespace;

-- name: begin
-- A run begins.
INSERT INTO pulled_runs (source_id, namespace, run, is_complete)
VALUES (:source_id, :namespace, :run, 0)
ON CONFLICT (source_id) DO UPDATE SET run = excluded.run, is_complete = 0
WHERE namespace = excluded.namespace;

-- name: finish
-- A run is complete.
UPDATE pulled_runs SET is_complete = 1
WHERE source_id = :source_id AND namespace = :namespace AND run = :run;

-- name: blocks
-- All blocks of a source.
SELECT block, rows, digest, first_key, is_settled FROM pulled_blocks
WHERE source_id = :source_id AND namespace = :namespace ORDER BY block;

-- name: rows
-- What is remembered of some rows.
SELECT r.document_id, r.block, r.mark, r.content
FROM json_each(:document_ids) i CROSS JOIN pulled_rows r
    ON r.source_id = :source_id AND r.document_id = i.value
WHERE r.namespace = :namespace;

-- name: count
-- How many rows are remembered of a source.
SELECT count(*) FROM pulled_rows WHERE source_id = :source_id AND namespace = :namespace;

-- name: count_lost
-- Rows that would be left without a block.
-- The numbers of blocks are found in steps, each a look into
-- the index: rows of blocks that are there are not read.
WITH RECURSIVE steps (block) AS (
    SELECT min(block) FROM pulled_rows WHERE source_id = :source_id
    UNION ALL
    SELECT (SELECT min(r.block) FROM pulled_rows r
            WHERE r.source_id = :source_id AND r.block > steps.block)
    FROM steps WHERE steps.block IS NOT NULL
)
SELECT count(*) FROM steps s CROSS JOIN pulled_rows r
    ON r.source_id = :source_id AND r.block = s.block AND r.namespace = :namespace
WHERE s.block IN (SELECT value FROM json_each(:blocks)) OR NOT EXISTS (
    SELECT 1 FROM pulled_blocks b WHERE b.source_id = :source_id AND b.block = s.block);

-- name: lost
-- Rows without a block, found in the same way.
WITH RECURSIVE steps (block) AS (
    SELECT min(block) FROM pulled_rows WHERE source_id = :source_id
    UNION ALL
    SELECT (SELECT min(r.block) FROM pulled_rows r
            WHERE r.source_id = :source_id AND r.block > steps.block)
    FROM steps WHERE steps.block IS NOT NULL
)
SELECT r.document_id FROM steps s CROSS JOIN pulled_rows r
    ON r.source_id = :source_id AND r.block = s.block AND r.namespace = :namespace
WHERE NOT EXISTS (
    SELECT 1 FROM pulled_blocks b WHERE b.source_id = :source_id AND b.block = s.block)
LIMIT :limit;

-- name: put_row
-- What is remembered of a row.
INSERT INTO pulled_rows (source_id, document_id, namespace, block, mark, content)
VALUES (:source_id, :document_id, :namespace, :block, :mark, :content)
ON CONFLICT (source_id, document_id)
DO UPDATE SET block = excluded.block, mark = excluded.mark, content = excluded.content
WHERE namespace = excluded.namespace;

-- name: move_rows
-- Rows that are as they were belong to another block.
UPDATE pulled_rows SET block = :block
WHERE source_id = :source_id AND namespace = :namespace
  AND document_id IN (SELECT value FROM json_each(:document_ids));

-- name: remove_rows
-- Rows that are gone.
DELETE FROM pulled_rows
WHERE source_id = :source_id AND namespace = :namespace
  AND document_id IN (SELECT value FROM json_each(:document_ids));

-- name: put_block
-- A block and what its rows are compared by.
INSERT INTO pulled_blocks (source_id, block, namespace, rows, digest, first_key, is_settled)
VALUES (:source_id, :block, :namespace, :rows, :digest, :first_key, :is_settled)
ON CONFLICT (source_id, block) DO UPDATE SET rows = excluded.rows, digest = excluded.digest,
    first_key = excluded.first_key, is_settled = excluded.is_settled
WHERE namespace = excluded.namespace;

-- name: drop_blocks
-- Blocks that are no longer found in the source.
DELETE FROM pulled_blocks
WHERE source_id = :source_id AND namespace = :namespace
  AND block IN (SELECT value FROM json_each(:blocks));
