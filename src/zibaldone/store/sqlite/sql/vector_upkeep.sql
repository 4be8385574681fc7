-- name: states
-- What a worker needs to know of documents before it embeds anything.
SELECT d.document_key, d.document_id, d.title, d.revision, d.vector_status, d.deleted_at_us IS NULL
FROM json_each(:document_keys) k CROSS JOIN documents d ON d.document_key = k.value;

-- name: chunks_without_vector
-- Chunks of documents that the model has not seen; the first of each, then the second of each.
SELECT c.document_key, c.chunk_key, c.heading, c.body FROM (
    SELECT l.chunk_key,
           row_number() OVER (PARTITION BY l.document_key ORDER BY l.chunk_index) AS turn
    FROM json_each(:document_keys) k CROSS JOIN chunks l ON l.document_key = k.value
    WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = l.chunk_key)
    ORDER BY turn, k.key LIMIT :limit
) CROSS JOIN chunks c USING (chunk_key)
ORDER BY c.document_key, c.chunk_index;

-- name: lacking
-- Documents with a chunk that the model has not seen.
SELECT k.value FROM json_each(:document_keys) k WHERE EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = k.value
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
);

-- name: lacking_page
-- Documents in key order that should have vectors, with whether they lack one of the model.
SELECT d.document_key, EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
)
FROM documents d
WHERE d.document_key > :after AND d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
ORDER BY d.document_key LIMIT :limit;

-- name: put
-- Vectors of one size, one after the other, for those of the chunks that are still there.
INSERT OR REPLACE INTO vectors (model_id, chunk_key, vector)
SELECT :model_id, c.chunk_key, substr(:packed, 1 + k.key * :size_bytes, :size_bytes)
FROM json_each(:chunk_keys) k CROSS JOIN chunks c ON c.chunk_key = k.value
RETURNING chunk_key;

-- name: delete
-- Remove vectors by model and chunk.
DELETE FROM vectors
WHERE (model_id, chunk_key) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:vectors));

-- name: drop
-- Remove some of a model's vectors.
DELETE FROM vectors WHERE model_id = :model_id AND chunk_key IN (
    SELECT chunk_key FROM vectors WHERE model_id = :model_id ORDER BY chunk_key LIMIT :limit
);

-- name: enqueue_missing
-- Queue documents (key, new job id), if that is still needed and nobody has asked.
INSERT INTO jobs (job_id, kind, namespace, prefix, subject, created_at_us, not_before_us, payload)
SELECT n.value ->> 1, :kind, d.namespace, '', CAST(d.document_key AS TEXT), :at_us, 0,
       json_object('revision', d.revision)
FROM json_each(:jobs) n CROSS JOIN documents d ON d.document_key = n.value ->> 0
WHERE d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
  AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.kind = :kind AND j.namespace = d.namespace
      AND j.subject = CAST(d.document_key AS TEXT) AND j.state <= 1)
  AND (d.vector_status IN ('pending', 'error') OR EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
  ))
RETURNING namespace, subject;

-- name: enqueue_cut
-- Chunks of documents are new, whatever the model; a document kept out of vectors stays so.
INSERT INTO jobs (job_id, kind, namespace, prefix, subject, created_at_us, not_before_us, payload)
SELECT n.value ->> 1, :kind, d.namespace, '', CAST(d.document_key AS TEXT), :at_us, 0,
       json_object('revision', d.revision)
FROM json_each(:jobs) n CROSS JOIN documents d ON d.document_key = n.value ->> 0
WHERE d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
RETURNING namespace, subject;

-- name: set_pending
-- Documents wait for vectors again.
UPDATE documents SET vector_status = 'pending', vector_error = NULL
WHERE document_key IN (SELECT value FROM json_each(:document_keys))
  AND deleted_at_us IS NULL AND vector_status <> 'skipped';

-- name: set_ready
-- The documents' vectors are complete; nothing else may change, and no new work may follow.
-- The unary plus keeps the planner from walking the index of all documents that wait.
UPDATE documents SET vector_status = 'ready', vector_error = NULL
FROM json_each(:revisions) r
WHERE document_key = r.value ->> 0 AND revision = r.value ->> 1
  AND +vector_status IN ('pending', 'error') AND deleted_at_us IS NULL;

-- name: set_error
-- The documents cannot be embedded; why.
UPDATE documents SET vector_status = 'error', vector_error = e.value ->> 2
FROM json_each(:errors) e
WHERE document_key = e.value ->> 0 AND revision = e.value ->> 1 AND +vector_status = 'pending';
