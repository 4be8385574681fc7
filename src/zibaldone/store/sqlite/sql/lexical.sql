-- name: search
-- The best chunks that match, are visible and pass the filter; best first.
-- CROSS JOIN: FTS5 gives them in order of rank, and each is checked as it comes.
SELECT t.rowid, -t.rank AS score
FROM chunk_terms t
CROSS JOIN chunks c ON c.chunk_key = t.rowid
CROSS JOIN documents d USING (document_key)
CROSS JOIN facets f USING (document_key)
WHERE t.chunk_terms MATCH :match AND d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
  AND d.source_id IN (
    SELECT source_id FROM sources
    WHERE enabled = 1 AND namespace IN (:namespace, '*')
      AND (:source_ids IS NULL OR source_id IN (SELECT value FROM json_each(:source_ids)))
      AND (:source_names IS NULL OR name IN (SELECT value FROM json_each(:source_names)))
  )
  AND (:document_ids IS NULL OR d.document_id IN (SELECT value FROM json_each(:document_ids)))
  AND (:without_ids IS NULL OR d.document_id NOT IN (SELECT value FROM json_each(:without_ids)))
  AND (:min_score IS NULL OR f.score >= :min_score)
  AND (:post_types IS NULL OR f.post_type IN (SELECT value FROM json_each(:post_types)))
  AND (:created_after IS NULL OR f.created_us >= :created_after)
  AND (:created_before IS NULL OR f.created_us < :created_before)
  AND (:updated_after IS NULL OR d.updated_at_us >= :updated_after)
  AND (:updated_before IS NULL OR d.updated_at_us < :updated_before)
  AND (:tags_any IS NULL OR EXISTS (
    SELECT 1 FROM document_tags g
    WHERE g.document_key = d.document_key AND g.tag IN (SELECT value FROM json_each(:tags_any))
  ))
  AND (:tags_all IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(:tags_all) w
    WHERE NOT EXISTS (
      SELECT 1 FROM document_tags g WHERE g.document_key = d.document_key AND g.tag = w.value
    )
  ))
ORDER BY t.rank
LIMIT :limit OFFSET :offset;

-- name: search_own
-- The same hits for a tenant with few chunks: only those are ranked, not all that match.
-- The + keeps FTS5 from looking up each of them by itself, which counts all words anew each time.
WITH own AS MATERIALIZED (
  SELECT c.chunk_key
  FROM documents d
  CROSS JOIN chunks c USING (document_key)
  CROSS JOIN facets f USING (document_key)
  WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND d.document_id < :end
  AND d.source_id IN (
    SELECT source_id FROM sources
    WHERE enabled = 1 AND namespace IN (:namespace, '*')
      AND (:source_ids IS NULL OR source_id IN (SELECT value FROM json_each(:source_ids)))
      AND (:source_names IS NULL OR name IN (SELECT value FROM json_each(:source_names)))
  )
  AND (:document_ids IS NULL OR d.document_id IN (SELECT value FROM json_each(:document_ids)))
  AND (:without_ids IS NULL OR d.document_id NOT IN (SELECT value FROM json_each(:without_ids)))
  AND (:min_score IS NULL OR f.score >= :min_score)
  AND (:post_types IS NULL OR f.post_type IN (SELECT value FROM json_each(:post_types)))
  AND (:created_after IS NULL OR f.created_us >= :created_after)
  AND (:created_before IS NULL OR f.created_us < :created_before)
  AND (:updated_after IS NULL OR d.updated_at_us >= :updated_after)
  AND (:updated_before IS NULL OR d.updated_at_us < :updated_before)
  AND (:tags_any IS NULL OR EXISTS (
    SELECT 1 FROM document_tags g
    WHERE g.document_key = d.document_key AND g.tag IN (SELECT value FROM json_each(:tags_any))
  ))
  AND (:tags_all IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(:tags_all) w
    WHERE NOT EXISTS (
      SELECT 1 FROM document_tags g WHERE g.document_key = d.document_key AND g.tag = w.value
    )
  ))
)
SELECT t.rowid, -t.rank AS score
FROM chunk_terms t
WHERE t.chunk_terms MATCH :match AND +t.rowid IN own
ORDER BY +t.rank, t.rowid
LIMIT :limit OFFSET :offset;

-- name: own_chunks
-- How many chunks the tenant can see, counted up to a limit.
SELECT count(*) FROM (
  SELECT 1
  FROM documents d
  CROSS JOIN chunks c USING (document_key)
  WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
    AND d.document_id >= :start AND d.document_id < :end
  LIMIT :limit);

-- name: chunks_with
-- How many chunks match, counted up to a limit. Of the whole file, as the ranking's own counts.
SELECT count(*) FROM (SELECT 1 FROM chunk_terms WHERE chunk_terms MATCH :match LIMIT :limit);

-- name: first_chunks_with
-- How many chunks match, counted up to a limit, and the highest key that was reached.
SELECT count(*), max(rowid)
FROM (SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH :match LIMIT :limit);

-- name: totals
-- What FTS5 keeps for its ranking: the number of chunks, then the lengths of the columns.
SELECT block FROM chunk_terms_data WHERE id = 1;

-- name: newest_chunk
-- The highest key a chunk has; keys only grow.
SELECT coalesce(max(chunk_key), 0) FROM chunks;

-- name: matching_scan
-- Chunks that match, in the order of their keys.
SELECT rowid FROM chunk_terms
WHERE chunk_terms MATCH :match AND rowid BETWEEN :first AND :last
ORDER BY rowid LIMIT :limit;

-- name: matching_keys
-- Which of these chunks match, looked up one by one.
SELECT rowid FROM chunk_terms
WHERE chunk_terms MATCH :match AND rowid IN (SELECT value FROM json_each(:chunk_keys));

-- name: visible
-- Which of these chunks the tenant can see.
SELECT c.chunk_key
FROM json_each(:chunk_keys) k
CROSS JOIN chunks c ON c.chunk_key = k.value
CROSS JOIN documents d USING (document_key)
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);
