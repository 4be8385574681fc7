-- name: forget_dead
-- Workers that gave no sign for long. One from the far future has a clock that was wrong.
DELETE FROM index_workers WHERE alive_until_us NOT BETWEEN :now_us AND :latest_us;

-- name: is_known
-- Whether a worker has been working all the time.
SELECT EXISTS (SELECT 1 FROM index_workers WHERE worker_key = :worker_key);

-- name: model_in_use
-- The model of the workers that live: they all have the same.
SELECT model_id, identity FROM index_workers JOIN models USING (model_id)
WHERE alive_until_us BETWEEN :now_us AND :latest_us LIMIT 1;

-- name: join_workers
-- A worker lives.
INSERT INTO index_workers (worker_key, model_id, alive_until_us)
VALUES (:worker_key, :model_id, :alive_until_us)
ON CONFLICT (worker_key) DO UPDATE SET alive_until_us = excluded.alive_until_us;

-- name: leave_workers
-- A worker ends.
DELETE FROM index_workers WHERE worker_key = :worker_key;

-- name: lease
-- Take the oldest due documents for a while, with all their changes; none that another worker has.
UPDATE outbox SET leased_until_us = :leased_until_us, attempts = attempts + 1
WHERE parked = 0 AND document_key IN (
    SELECT o.document_key FROM outbox o
    WHERE o.parked = 0 AND o.not_before_us <= :now_us AND NOT EXISTS (
        SELECT 1 FROM outbox l WHERE l.document_key = o.document_key AND l.leased_until_us > :now_us
    )
    ORDER BY o.outbox_key LIMIT :limit
)
RETURNING outbox_key, document_key, attempts;

-- name: has_due
-- Whether there is anything to take: asked often, and without the lock that taking needs.
SELECT EXISTS (
    SELECT 1 FROM outbox WHERE parked = 0 AND not_before_us <= :now_us AND leased_until_us <= :now_us
);

-- name: renew
-- The worker is alive and needs longer.
UPDATE outbox SET leased_until_us = :leased_until_us
WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: release
-- Give a change back at once: a part of it is done, or its worker stops.
UPDATE outbox SET leased_until_us = 0, attempts = 0, error = NULL
WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: finish
-- Forget changes of a document that have been dealt with.
DELETE FROM outbox WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: retry
-- Come back to a change later.
UPDATE outbox SET not_before_us = :not_before_us, leased_until_us = 0, error = :error
WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: wait
-- Come back to a change later without counting the attempt: the model could not be had.
UPDATE outbox SET not_before_us = :not_before_us, leased_until_us = 0, error = :error,
                  attempts = max(0, attempts - 1)
WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: park
-- Set a change aside: it failed too often. Another change of the document, or an operator, revives it.
UPDATE outbox SET parked = 1, leased_until_us = 0, error = :error
WHERE document_key = :document_key AND outbox_key <= :outbox_key;

-- name: enqueue
-- Ask for a document to be indexed, if that is still needed and nobody has asked.
INSERT INTO outbox (document_key, revision, kind, at_us)
SELECT d.document_key, d.revision, 'index', :at_us FROM documents d
WHERE d.document_key = :document_key AND d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.document_key = d.document_key AND o.parked = 0)
  AND (d.vector_status IN ('pending', 'error') OR EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
  ));

-- name: enqueue_cut
-- Passages of a document are new, whatever the model; one that is kept out of vectors stays so.
INSERT INTO outbox (document_key, revision, kind, at_us)
SELECT document_key, revision, 'index', :at_us FROM documents
WHERE document_key = :document_key AND deleted_at_us IS NULL AND vector_status <> 'skipped';

-- name: forget_parked
-- What was set aside of a document is taken up again by a new change.
DELETE FROM outbox WHERE document_key = :document_key AND parked = 1;

-- name: last_change
-- How far the outbox goes.
SELECT coalesce(max(outbox_key), 0) FROM outbox;

-- name: queued
-- How many changes up to a point are still to be dealt with.
SELECT count(*) FROM outbox WHERE parked = 0 AND outbox_key <= :outbox_key;

-- name: document_state
-- What a worker needs to know of a document before it embeds anything.
SELECT document_id, title, revision, vector_status, deleted_at_us IS NULL
FROM documents WHERE document_key = :document_key;

-- name: chunks_without_vector
-- Passages of a document that the model has not seen.
SELECT c.chunk_key, c.heading, c.body FROM chunks c
WHERE c.document_key = :document_key
  AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
ORDER BY c.chunk_index LIMIT :limit;

-- name: lacks_vectors
-- Whether there is a passage of the document that the model has not seen.
SELECT EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = :document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
);

-- name: put_vector
-- A vector, if its passage is still there.
INSERT OR REPLACE INTO vectors (model_id, chunk_key, vector)
SELECT :model_id, chunk_key, :vector FROM chunks WHERE chunk_key = :chunk_key;

-- name: log_change
-- Tell processes that hold the vectors in memory; passage 0 stands for all of a model.
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

-- name: drop_page
-- Remove some of a model's vectors.
DELETE FROM vectors WHERE model_id = :model_id AND chunk_key IN (
    SELECT chunk_key FROM vectors WHERE model_id = :model_id ORDER BY chunk_key LIMIT :limit
);

-- name: unqueued_page
-- Documents in key order for which nothing is queued, with whether something should be.
-- It should for those that wait or failed, and for those that lack a vector of the model.
SELECT d.document_key, d.vector_status IN ('pending', 'error') OR EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
)
FROM documents d
WHERE d.document_key > :after AND d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.document_key = d.document_key AND o.parked = 0)
ORDER BY d.document_key LIMIT :limit;

-- name: lacking_page
-- Documents in key order that should have vectors, with whether they lack one of the model.
SELECT d.document_key, EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
)
FROM documents d
WHERE d.document_key > :after AND d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
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
SELECT d.namespace, d.document_id FROM documents d
WHERE d.vector_status = 'ready' AND d.deleted_at_us IS NULL AND EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
)
LIMIT :limit;

-- name: failed_documents
-- Documents that could not be embedded, and why. The first condition leads to the index.
SELECT document_id, coalesce(vector_error, '') FROM documents
WHERE vector_status IN ('pending', 'error') AND vector_status = 'error' AND deleted_at_us IS NULL
LIMIT :limit;

-- name: counts
-- How much is indexed, how much waits.
SELECT count(*),
       count(*) FILTER (WHERE vector_status = 'ready'),
       count(*) FILTER (WHERE vector_status = 'pending'),
       count(*) FILTER (WHERE vector_status = 'skipped'),
       count(*) FILTER (WHERE vector_status = 'error'),
       (SELECT count(*) FROM chunks),
       (SELECT count(*) FROM vectors WHERE model_id = :model_id),
       (SELECT count(*) FROM chunks c JOIN documents d USING (document_key)
        WHERE d.vector_status <> 'skipped' AND d.deleted_at_us IS NULL
          AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)),
       (SELECT count(*) FROM outbox WHERE parked = 0),
       (SELECT count(*) FROM outbox WHERE parked = 1)
FROM documents WHERE deleted_at_us IS NULL;

-- name: pending_lag
-- How many wait, how many failed; since when the oldest and the youngest has been in the queue.
-- One that is in no queue counts from its last change. The first condition leads to the index.
SELECT count(*),
       (SELECT count(*) FROM documents
        WHERE vector_status IN ('pending', 'error') AND vector_status = 'error'
          AND deleted_at_us IS NULL),
       coalesce((SELECT at_us FROM outbox WHERE parked = 0 ORDER BY outbox_key LIMIT 1),
                min(updated_at_us)),
       coalesce((SELECT at_us FROM outbox WHERE parked = 0 ORDER BY outbox_key DESC LIMIT 1),
                max(updated_at_us))
FROM documents
WHERE vector_status IN ('pending', 'error') AND vector_status = 'pending' AND deleted_at_us IS NULL;
