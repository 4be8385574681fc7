-- name: counts
-- How much is indexed, how much waits.
SELECT count(*),
       count(*) FILTER (WHERE vector_status = 'ready'),
       count(*) FILTER (WHERE vector_status = 'pending'),
       count(*) FILTER (WHERE vector_status = 'skipped'),
       count(*) FILTER (WHERE vector_status = 'error'),
       (SELECT count(*) FROM zibaldone.chunks),
       (SELECT count(*) FROM zibaldone.vectors WHERE model_id = %(model_id)s),
       (SELECT count(*) FROM zibaldone.chunks c JOIN zibaldone.documents d USING (document_key)
        WHERE d.vector_status <> 'skipped' AND d.deleted_at_us IS NULL
          AND NOT EXISTS (SELECT 1 FROM zibaldone.vectors v
                          WHERE v.model_id = %(model_id)s AND v.chunk_key = c.chunk_key)),
       (SELECT count(*) FROM zibaldone.jobs WHERE kind = %(kind)s AND state = 0)
         + (SELECT count(*) FROM zibaldone.jobs WHERE kind = %(kind)s AND state = 1),
       (SELECT count(*) FROM zibaldone.jobs WHERE kind = %(kind)s AND state = 2)
FROM zibaldone.documents WHERE deleted_at_us IS NULL;

-- name: lag
-- How many wait, how many failed; since when the oldest and the youngest has been in the queue.
-- One that is in no queue counts from its last change. The first condition leads to the index.
SELECT count(*),
       (SELECT count(*) FROM zibaldone.documents
        WHERE vector_status IN ('pending', 'error') AND vector_status = 'error'
          AND deleted_at_us IS NULL),
       coalesce(least(
           (SELECT created_at_us FROM zibaldone.jobs
            WHERE kind = %(kind)s AND state = 0 ORDER BY job_key LIMIT 1),
           (SELECT min(created_at_us) FROM zibaldone.jobs WHERE kind = %(kind)s AND state = 1)
       ), min(updated_at_us)),
       coalesce(greatest(
           (SELECT created_at_us FROM zibaldone.jobs
            WHERE kind = %(kind)s AND state = 0 ORDER BY job_key DESC LIMIT 1),
           (SELECT max(created_at_us) FROM zibaldone.jobs WHERE kind = %(kind)s AND state = 1)
       ), max(updated_at_us))
FROM zibaldone.documents
WHERE vector_status IN ('pending', 'error') AND vector_status = 'pending'
  AND deleted_at_us IS NULL;

-- name: failed_documents
-- Documents that could not be embedded, and why. The first condition leads to the index.
SELECT document_id, coalesce(vector_error, '') FROM zibaldone.documents
WHERE vector_status IN ('pending', 'error') AND vector_status = 'error' AND deleted_at_us IS NULL
LIMIT %(limit)s;

-- name: unqueued_page
-- Documents in key order for which nothing is queued, with whether something should be.
-- It should for those that wait or failed, and for those that lack a vector of the model.
-- OFFSET 0: as in vector_upkeep.sql.
SELECT d.document_key, d.vector_status IN ('pending', 'error') OR EXISTS (
    SELECT 1 FROM zibaldone.chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM zibaldone.vectors v
                      WHERE v.model_id = %(model_id)s AND v.chunk_key = c.chunk_key OFFSET 0)
    OFFSET 0
)
FROM zibaldone.documents d
WHERE d.document_key > %(after)s AND d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
  AND NOT EXISTS (SELECT 1 FROM zibaldone.jobs j
      WHERE j.kind = %(kind)s AND j.subject = d.document_key::text AND j.state <= 1 OFFSET 0)
ORDER BY d.document_key LIMIT %(limit)s;

-- name: orphan_vectors
-- Vectors whose chunk is gone.
SELECT model_id, chunk_key FROM zibaldone.vectors v
WHERE NOT EXISTS (SELECT 1 FROM zibaldone.chunks c WHERE c.chunk_key = v.chunk_key)
LIMIT %(limit)s;

-- name: ghost_documents
-- Documents said to be ready that lack a vector of the model.
SELECT d.namespace, d.document_id FROM zibaldone.documents d
WHERE d.vector_status = 'ready' AND d.deleted_at_us IS NULL AND EXISTS (
    SELECT 1 FROM zibaldone.chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM zibaldone.vectors v
                      WHERE v.model_id = %(model_id)s AND v.chunk_key = c.chunk_key)
)
LIMIT %(limit)s;
