-- name: search
-- The best passages that match, are in scope and pass the filter; best first.
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

-- name: passages_with
-- How many passages match, counted up to a limit. Of the whole file, as the ranking's own counts.
SELECT count(*) FROM (SELECT 1 FROM chunk_terms WHERE chunk_terms MATCH :match LIMIT :limit);

-- name: newest_chunk
-- The highest key a passage has; keys only grow.
SELECT coalesce(max(chunk_key), 0) FROM chunks;

-- name: matching
-- Which of these passages match and are in scope.
SELECT t.rowid
FROM chunk_terms t
CROSS JOIN chunks c ON c.chunk_key = t.rowid
CROSS JOIN documents d USING (document_key)
WHERE t.chunk_terms MATCH :match AND t.rowid IN (SELECT value FROM json_each(:chunk_keys))
  AND d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: documents_of
-- The document of each of these passages, without reading the passages themselves.
SELECT c.chunk_key, d.document_id
FROM json_each(:chunk_keys) k
CROSS JOIN chunks c ON c.chunk_key = k.value
CROSS JOIN documents d USING (document_key)
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: passages
-- Passages by key with what is shown of them, in one statement however many there are.
-- CROSS JOIN: begin with the keys; the planner would walk all documents.
SELECT c.chunk_key, d.document_id, c.chunk_index, d.title, c.heading, c.body, c.start_char,
       d.source_id, s.name, d.metadata, d.tags
FROM json_each(:chunk_keys) k
CROSS JOIN chunks c ON c.chunk_key = k.value
CROSS JOIN documents d USING (document_key)
CROSS JOIN sources s USING (source_id)
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: passages_by_place
-- Passages by document and number.
SELECT c.chunk_key, d.document_id, c.chunk_index, d.title, c.heading, c.body, c.start_char,
       d.source_id, s.name, d.metadata, d.tags
FROM json_each(:places) p
CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = p.value ->> 0
CROSS JOIN chunks c ON c.document_key = d.document_key AND c.chunk_index = p.value ->> 1
CROSS JOIN sources s USING (source_id)
WHERE d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: put_facets
-- What a live document can be filtered by.
INSERT OR REPLACE INTO facets (document_key, created_us, score, post_type)
VALUES (:document_key, :created_us, :score, :post_type);

-- name: delete_facets
-- A document that is gone cannot be found by them.
DELETE FROM facets WHERE document_key = :document_key;

-- name: delete_tags
-- Forget a document's tags.
DELETE FROM document_tags WHERE document_key = :document_key;

-- name: put_tag
-- One tag of a document.
INSERT INTO document_tags (tag, document_key) VALUES (:tag, :document_key);

-- name: source_names
-- Which source each of these documents is of.
SELECT d.document_id, s.name
FROM json_each(:document_ids) i
CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = i.value
CROSS JOIN sources s USING (source_id)
WHERE d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: sources
-- Every source the caller can see, with how much it holds and when it was last read.
-- All documents are passed over once, however many sources there are.
SELECT s.source_id, s.name, s.enabled, s.last_sync_at_us,
       coalesce(held.documents, 0), coalesce(held.chunks, 0)
FROM sources s LEFT JOIN (
    SELECT d.source_id, count(*) AS documents, sum((
        SELECT count(*) FROM chunks c WHERE c.document_key = d.document_key
    )) AS chunks
    FROM documents d
    WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
      AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
    GROUP BY d.source_id
) held USING (source_id)
WHERE s.namespace IN (:namespace, '*') ORDER BY s.source_id;
