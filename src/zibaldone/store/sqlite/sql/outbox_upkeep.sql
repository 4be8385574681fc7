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
FROM json_each(:changes) c
WHERE document_key = c.value ->> 0 AND outbox_key <= c.value ->> 1;

-- name: release
-- Give changes back at once: a part of them is done, or their worker stops.
UPDATE outbox SET leased_until_us = 0, attempts = 0, error = NULL
FROM json_each(:changes) c
WHERE document_key = c.value ->> 0 AND outbox_key <= c.value ->> 1;

-- name: finish
-- Forget changes that have been dealt with.
DELETE FROM outbox WHERE outbox_key IN (
    SELECT o.outbox_key FROM json_each(:changes) c
    CROSS JOIN outbox o ON o.document_key = c.value ->> 0 AND o.outbox_key <= c.value ->> 1
);

-- name: retry
-- Come back to changes later.
UPDATE outbox SET not_before_us = f.value ->> 2, leased_until_us = 0, error = f.value ->> 3
FROM json_each(:failures) f
WHERE document_key = f.value ->> 0 AND outbox_key <= f.value ->> 1;

-- name: wait
-- Come back to changes later without counting the attempt: the model was unavailable.
UPDATE outbox SET not_before_us = f.value ->> 2, leased_until_us = 0, error = f.value ->> 3,
                  attempts = max(0, attempts - 1)
FROM json_each(:failures) f
WHERE document_key = f.value ->> 0 AND outbox_key <= f.value ->> 1;

-- name: park
-- Set changes aside: they failed too often.
UPDATE outbox SET parked = 1, leased_until_us = 0, error = f.value ->> 3
FROM json_each(:failures) f
WHERE document_key = f.value ->> 0 AND outbox_key <= f.value ->> 1;

-- name: enqueue
-- Ask for documents to be indexed, if that is still needed and nobody has asked.
INSERT INTO outbox (document_key, revision, kind, at_us)
SELECT d.document_key, d.revision, 'index', :at_us
FROM json_each(:document_keys) k CROSS JOIN documents d ON d.document_key = k.value
WHERE d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.document_key = d.document_key AND o.parked = 0)
  AND (d.vector_status IN ('pending', 'error') OR EXISTS (
    SELECT 1 FROM chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model_id AND v.chunk_key = c.chunk_key)
  ))
RETURNING document_key;

-- name: enqueue_cut
-- Chunks of documents are new, whatever the model; a document kept out of vectors stays so.
INSERT INTO outbox (document_key, revision, kind, at_us)
SELECT d.document_key, d.revision, 'index', :at_us
FROM json_each(:document_keys) k CROSS JOIN documents d ON d.document_key = k.value
WHERE d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
RETURNING document_key;

-- name: forget_parked
-- What was set aside of documents is replaced by a new change.
DELETE FROM outbox
WHERE document_key IN (SELECT value FROM json_each(:document_keys)) AND parked = 1;

-- name: set_pending
-- Documents wait for vectors again.
UPDATE documents SET vector_status = 'pending', vector_error = NULL
WHERE document_key IN (SELECT value FROM json_each(:document_keys))
  AND deleted_at_us IS NULL AND vector_status <> 'skipped';

-- name: pending
-- How many changes made up to a time are still to be dealt with.
SELECT count(*) FROM outbox WHERE parked = 0 AND at_us <= :at_us;
