-- name: model
-- A model by its identity.
SELECT model_id, dimensions FROM models WHERE identity = :identity;

-- name: newest_change
-- How far the log of changes goes, and where it begins.
SELECT coalesce((SELECT max(change_key) FROM vector_changes), 0),
       coalesce((SELECT min(change_key) FROM vector_changes), 0);

-- name: changed_chunks
-- Chunks whose vectors changed in a stretch of the log.
SELECT DISTINCT chunk_key FROM vector_changes
WHERE model_id = :model_id AND change_key > :after AND change_key <= :through;

-- name: vectors_page
-- What a process holds in memory of a model, page by page.
SELECT v.chunk_key, c.document_key, d.namespace, d.source_id, v.vector
FROM vectors v JOIN chunks c USING (chunk_key) JOIN documents d USING (document_key)
WHERE v.model_id = :model_id AND v.chunk_key > :after
ORDER BY v.chunk_key LIMIT :limit;

-- name: some_vectors
-- The same for some chunks.
-- CROSS JOIN: begin with the keys; the planner would walk all vectors.
SELECT v.chunk_key, c.document_key, d.namespace, d.source_id, v.vector
FROM json_each(:chunk_keys) k
CROSS JOIN vectors v ON v.model_id = :model_id AND v.chunk_key = k.value
CROSS JOIN chunks c USING (chunk_key) CROSS JOIN documents d USING (document_key);

-- name: visible
-- Those of some chunks that the tenant sees, with document and source.
SELECT c.chunk_key, c.document_key, d.source_id FROM json_each(:chunk_keys) k
CROSS JOIN chunks c ON c.chunk_key = k.value CROSS JOIN documents d USING (document_key)
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: sources
-- Enabled sources that the caller can see and asked for.
SELECT source_id FROM sources
WHERE enabled = 1 AND namespace IN (:namespace, '*')
  AND (:source_ids IS NULL OR source_id IN (SELECT value FROM json_each(:source_ids)))
  AND (:source_names IS NULL OR name IN (SELECT value FROM json_each(:source_names)));

-- name: eligible
-- The tenant's documents that a filter admits, found by walking the paths.
SELECT d.document_key FROM documents d JOIN facets f USING (document_key)
WHERE d.deleted_at_us IS NULL AND d.namespace = :namespace
  AND d.document_id >= :start AND d.document_id < coalesce(:end, x'')
  AND (:min_score IS NULL OR f.score >= :min_score)
  AND (:post_types IS NULL OR f.post_type IN (SELECT value FROM json_each(:post_types)))
  AND (:created_after IS NULL OR f.created_us >= :created_after)
  AND (:created_before IS NULL OR f.created_us < :created_before)
  AND (:updated_after IS NULL OR d.updated_at_us >= :updated_after)
  AND (:updated_before IS NULL OR d.updated_at_us < :updated_before);

-- name: tagged
-- Documents with at least so many of these tags.
SELECT document_key FROM document_tags
WHERE tag IN (SELECT value FROM json_each(:tags))
GROUP BY document_key HAVING count(*) >= :least;

-- name: tagged_own
-- Those of the tenant's documents, by walking the paths and the tags of each.
-- The + keeps SQLite from looking up each document in every tag.
SELECT d.document_key FROM documents d
CROSS JOIN document_tags g USING (document_key)
WHERE d.deleted_at_us IS NULL AND d.namespace = :namespace
  AND d.document_id >= :start AND d.document_id < coalesce(:end, x'')
  AND +g.tag IN (SELECT value FROM json_each(:tags))
GROUP BY d.document_key HAVING count(*) >= :least;

-- name: tags_given
-- How often these tags are given, counted up to a limit.
SELECT count(*) FROM (
  SELECT 1 FROM document_tags WHERE tag IN (SELECT value FROM json_each(:tags)) LIMIT :limit);

-- name: identified
-- The tenant's documents by their ids.
SELECT DISTINCT d.document_key FROM json_each(:document_ids) i
CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = i.value
WHERE d.deleted_at_us IS NULL AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: coverage
-- How many of the caller's documents have no vectors yet or failed, and whether the model has any here.
SELECT (SELECT count(*) FROM documents d
        WHERE d.vector_status IN ('pending', 'error') AND d.deleted_at_us IS NULL AND d.namespace = :namespace
          AND d.document_id >= :start AND d.document_id < coalesce(:end, x'')),
       EXISTS (SELECT 1 FROM models m JOIN vectors v USING (model_id) WHERE m.identity = :identity);
