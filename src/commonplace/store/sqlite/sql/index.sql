-- name: lease
-- Take the oldest due changes for a while; a worker that dies gives them back by the lease's end.
UPDATE outbox SET leased_until_us = :leased_until_us, attempts = attempts + 1
WHERE outbox_key IN (
    SELECT outbox_key FROM outbox
    WHERE parked = 0 AND not_before_us <= :now_us AND leased_until_us <= :now_us
    ORDER BY outbox_key LIMIT :limit
)
RETURNING outbox_key, document_key, attempts;

-- name: finish
-- Forget changes of a document that have been dealt with.
DELETE FROM outbox WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: retry
-- Come back to a change later.
UPDATE outbox SET not_before_us = :not_before_us, leased_until_us = 0, error = :error
WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: park
-- Set a change aside: it failed too often. Another change of the document, or an operator, revives it.
UPDATE outbox SET parked = 1, leased_until_us = 0, error = :error
WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: unpark
-- Try everything again that was set aside.
UPDATE outbox SET parked = 0, attempts = 0, not_before_us = 0 WHERE parked = 1;

-- name: document_state
-- What a worker needs to know of a document before it embeds anything.
SELECT document_id, title, revision, vector_status, deleted_at_us IS NULL
FROM documents WHERE document_key = :document_key;

-- name: chunks_without_vector
-- Passages of a document that the model has not seen.
SELECT c.chunk_key, c.heading, c.body FROM chunks c
WHERE c.document_key = :document_key
  AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
ORDER BY c.chunk_index;

-- name: put_vector
-- A vector, if its passage is still there.
INSERT OR REPLACE INTO vectors (model_id, chunk_key, vector)
SELECT :model_id, chunk_key, :vector FROM chunks WHERE chunk_key = :chunk_key;

-- name: log_change
-- Tell processes that hold the vectors in memory.
INSERT INTO vector_changes (model_id, chunk_key) VALUES (:model_id, :chunk_key);

-- name: trim_changes
-- Keep the log of changes short.
DELETE FROM vector_changes
WHERE change_key <= (SELECT coalesce(max(change_key), 0) FROM vector_changes) - :kept;

-- name: set_ready
-- The document's vectors are complete; nothing else may change, and no new work may follow.
UPDATE documents SET vector_status = 'ready', vector_error = NULL
WHERE document_key = :document_key AND revision = :revision AND vector_status IN ('pending', 'error')
  AND deleted_at_us IS NULL;

-- name: set_error
-- The document cannot be embedded; why.
UPDATE documents SET vector_status = 'error', vector_error = :error
WHERE document_key = :document_key AND revision = :revision AND vector_status = 'pending';

-- name: set_pending
-- The document waits for vectors again.
UPDATE documents SET vector_status = 'pending', vector_error = NULL
WHERE document_key = :document_key AND deleted_at_us IS NULL AND vector_status <> 'skipped';

-- name: enqueue
-- Ask for a document to be indexed.
INSERT INTO outbox (document_key, revision, kind, at_us)
SELECT document_key, revision, 'index', :at_us FROM documents
WHERE document_key = :document_key AND deleted_at_us IS NULL AND vector_status <> 'skipped';

-- name: model
-- A model by its identity.
SELECT model_id, dimensions FROM models WHERE identity = :identity;

-- name: add_model
-- A model that is new here.
INSERT INTO models (identity, dimensions, created_at_us) VALUES (:identity, :dimensions, :created_at_us)
ON CONFLICT (identity) DO NOTHING;

-- name: models
-- Every model that ever made a vector here, newest first, with how many it has.
SELECT m.model_id, m.identity, m.dimensions,
       (SELECT count(*) FROM vectors v WHERE v.model_id = m.model_id)
FROM models m ORDER BY m.model_id DESC;

-- name: missing_page
-- Live documents that should have vectors of the model and lack some, in key order.
SELECT d.document_key FROM documents d
WHERE d.document_key > :after AND d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
  AND EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
  )
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.document_key = d.document_key AND o.parked = 0)
ORDER BY d.document_key LIMIT :limit;

-- name: stuck_page
-- Documents that say they wait, without anything that would come for them.
SELECT d.document_key FROM documents d
WHERE d.vector_status IN ('pending', 'error') AND d.deleted_at_us IS NULL AND d.document_key > :after
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.document_key = d.document_key AND o.parked = 0)
ORDER BY d.document_key LIMIT :limit;

-- name: orphan_vectors
-- Vectors whose passage is gone.
SELECT model_id, chunk_key FROM vectors v
WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.chunk_key = v.chunk_key)
LIMIT :limit;

-- name: delete_vector
-- Remove one vector.
DELETE FROM vectors WHERE model_id = :model_id AND chunk_key = :chunk_key;

-- name: ghost_documents
-- Documents said to be ready that lack a vector of the model.
SELECT d.document_key, d.document_id, d.namespace FROM documents d
WHERE d.vector_status = 'ready' AND d.deleted_at_us IS NULL AND EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
)
LIMIT :limit;

-- name: counts
-- How much is indexed, how much waits.
SELECT (SELECT count(*) FROM documents WHERE deleted_at_us IS NULL),
       (SELECT count(*) FROM documents WHERE deleted_at_us IS NULL AND vector_status = 'ready'),
       (SELECT count(*) FROM documents WHERE deleted_at_us IS NULL AND vector_status = 'skipped'),
       (SELECT count(*) FROM documents WHERE deleted_at_us IS NULL AND vector_status = 'error'),
       (SELECT count(*) FROM chunks),
       (SELECT count(*) FROM vectors WHERE model_id = :model_id),
       (SELECT count(*) FROM outbox WHERE parked = 0),
       (SELECT count(*) FROM outbox WHERE parked = 1);

-- name: pending_instants
-- How many wait, since when the oldest and since when the youngest.
SELECT count(*), min(updated_at_us), max(updated_at_us)
FROM documents WHERE vector_status = 'pending' AND deleted_at_us IS NULL;

-- name: drop_other_models
-- Remove the vectors of all models but one.
DELETE FROM vectors WHERE model_id <> :model_id;
