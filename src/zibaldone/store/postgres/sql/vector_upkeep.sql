-- OFFSET 0 keeps a subquery apart, so that it is one look into an index for each row. Where tables
-- have grown since PostgreSQL last counted, it would read them whole for every page.

-- name: states
-- What a worker needs to know of documents before it embeds anything.
SELECT document_key, document_id, title, revision, vector_status, deleted_at_us IS NULL
FROM zibaldone.documents WHERE document_key = ANY(%(document_keys)s::bigint[]);

-- name: chunks_without_vector
-- Chunks of documents that the model has not seen; the first of each, then the second of each.
SELECT c.document_key, c.chunk_key, c.heading, c.body FROM (
    SELECT l.chunk_key,
           row_number() OVER (PARTITION BY l.document_key ORDER BY l.chunk_index) AS turn
    FROM unnest(%(document_keys)s::bigint[]) WITH ORDINALITY k (document_key, number)
    JOIN zibaldone.chunks l USING (document_key)
    WHERE NOT EXISTS (SELECT 1 FROM zibaldone.vectors v
                      WHERE v.model_id = %(model_id)s AND v.chunk_key = l.chunk_key)
    ORDER BY turn, k.number LIMIT %(limit)s
) lacking JOIN zibaldone.chunks c USING (chunk_key)
ORDER BY c.document_key, c.chunk_index;

-- name: lacking
-- Documents with a chunk that the model has not seen.
SELECT k.document_key FROM unnest(%(document_keys)s::bigint[]) k (document_key) WHERE EXISTS (
    SELECT 1 FROM zibaldone.chunks c WHERE c.document_key = k.document_key
      AND NOT EXISTS (SELECT 1 FROM zibaldone.vectors v
                      WHERE v.model_id = %(model_id)s AND v.chunk_key = c.chunk_key));

-- name: lacking_page
-- Documents in key order that should have vectors, with whether they lack one of the model.
SELECT d.document_key, EXISTS (
    SELECT 1 FROM zibaldone.chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM zibaldone.vectors v
                      WHERE v.model_id = %(model_id)s AND v.chunk_key = c.chunk_key OFFSET 0)
    OFFSET 0)
FROM zibaldone.documents d
WHERE d.document_key > %(after)s AND d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
ORDER BY d.document_key LIMIT %(limit)s;

-- name: hold
-- Those of the documents that nobody is writing. They stay as they are until this is committed.
SELECT document_key FROM zibaldone.documents
WHERE document_key = ANY(%(document_keys)s::bigint[])
ORDER BY document_key FOR NO KEY UPDATE SKIP LOCKED;

-- name: put
-- Vectors for those of the chunks that are still there, and stay there until this is committed.
-- One that a writer is taking away is left out: nobody waits for that writer.
WITH held AS (
    SELECT c.chunk_key, c.namespace, c.document_key FROM zibaldone.chunks c
    WHERE c.chunk_key = ANY(%(chunk_keys)s::bigint[])
    ORDER BY c.chunk_key FOR KEY SHARE SKIP LOCKED
)
INSERT INTO zibaldone.vectors (chunk_key, model_id, namespace, document_key, vector)
SELECT h.chunk_key, %(model_id)s, h.namespace, h.document_key, n.vector::real[]
FROM unnest(%(chunk_keys)s::bigint[], %(vectors)s::text[]) n (chunk_key, vector)
JOIN held h USING (chunk_key)
ON CONFLICT (chunk_key, model_id) DO UPDATE SET vector = excluded.vector;

-- name: delete
-- Remove vectors by model and chunk.
DELETE FROM zibaldone.vectors v
USING unnest(%(model_ids)s::bigint[], %(chunk_keys)s::bigint[]) g (model_id, chunk_key)
WHERE v.model_id = g.model_id AND v.chunk_key = g.chunk_key;

-- name: drop
-- Remove some of a model's vectors.
DELETE FROM zibaldone.vectors WHERE (chunk_key, model_id) IN (
    SELECT chunk_key, model_id FROM zibaldone.vectors WHERE model_id = %(model_id)s
    LIMIT %(limit)s FOR UPDATE)
RETURNING chunk_key;

-- name: enqueue_missing
-- Queue documents (key, new job id), if that is still needed and nobody has asked.
INSERT INTO zibaldone.jobs (job_id, kind, namespace, prefix, subject, created_at_us, not_before_us,
    payload)
SELECT n.job_id, %(kind)s, d.namespace, '', d.document_key::text, %(at_us)s, 0,
       '{"revision":' || d.revision || '}'
FROM unnest(%(document_keys)s::bigint[], %(job_ids)s::text[]) n (document_key, job_id)
CROSS JOIN LATERAL (SELECT * FROM zibaldone.documents
                    WHERE document_key = n.document_key OFFSET 0) d
WHERE d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
  AND NOT EXISTS (SELECT 1 FROM zibaldone.jobs j
      WHERE j.kind = %(kind)s AND j.subject = d.document_key::text AND j.state <= 1 OFFSET 0)
  AND (d.vector_status IN ('pending', 'error') OR EXISTS (
    SELECT 1 FROM zibaldone.chunks c WHERE c.document_key = d.document_key
      AND NOT EXISTS (SELECT 1 FROM zibaldone.vectors v
                      WHERE v.model_id = %(model_id)s AND v.chunk_key = c.chunk_key OFFSET 0)
    OFFSET 0))
RETURNING namespace, subject;

-- name: enqueue_cut
-- Chunks of documents are new, whatever the model; a document kept out of vectors stays so.
INSERT INTO zibaldone.jobs (job_id, kind, namespace, prefix, subject, created_at_us, not_before_us,
    payload)
SELECT n.job_id, %(kind)s, d.namespace, '', d.document_key::text, %(at_us)s, 0,
       '{"revision":' || d.revision || '}'
FROM unnest(%(document_keys)s::bigint[], %(job_ids)s::text[]) n (document_key, job_id)
JOIN zibaldone.documents d USING (document_key)
WHERE d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
RETURNING namespace, subject;

-- name: set_pending
-- Documents wait for vectors again.
UPDATE zibaldone.documents SET vector_status = 'pending', vector_error = NULL
WHERE document_key = ANY(%(document_keys)s::bigint[])
  AND deleted_at_us IS NULL AND vector_status <> 'skipped';

-- name: set_ready
-- The documents' vectors are complete; nothing else may change, and no new work may follow.
UPDATE zibaldone.documents d SET vector_status = 'ready', vector_error = NULL
FROM unnest(%(document_keys)s::bigint[], %(revisions)s::bigint[]) r (document_key, revision)
WHERE d.document_key = r.document_key AND d.revision = r.revision
  AND d.vector_status IN ('pending', 'error') AND d.deleted_at_us IS NULL;

-- name: set_error
-- The documents cannot be embedded; why.
UPDATE zibaldone.documents d SET vector_status = 'error', vector_error = e.reason
FROM unnest(%(document_keys)s::bigint[], %(revisions)s::bigint[], %(reasons)s::text[])
    e (document_key, revision, reason)
WHERE d.document_key = e.document_key AND d.revision = e.revision AND d.vector_status = 'pending';
