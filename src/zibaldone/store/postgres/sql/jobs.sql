-- name: add
-- Jobs without a unique key, in their order: what a document's write adds.
INSERT INTO zibaldone.jobs (job_id, kind, namespace, prefix, subject, created_at_us, not_before_us,
    payload, key_id)
SELECT n.job_id, n.kind, %(namespace)s, %(prefix)s, n.subject, n.created_at_us, n.not_before_us,
       n.payload, n.key_id
FROM unnest(%(job_ids)s::text[], %(kinds)s::text[], %(subjects)s::text[],
    %(created_at_us)s::bigint[], %(not_before_us)s::bigint[], %(payloads)s::text[],
    %(key_ids)s::text[])
    WITH ORDINALITY n (job_id, kind, subject, created_at_us, not_before_us, payload, key_id, number)
ORDER BY n.number;

-- name: add_unique
-- A job; one whose unique key is taken by a queued or running job of its kind is left out.
INSERT INTO zibaldone.jobs (job_id, kind, namespace, prefix, subject, created_at_us, not_before_us,
    unique_key, payload, key_id)
VALUES (%(job_id)s, %(kind)s, %(namespace)s, %(prefix)s, %(subject)s, %(created_at_us)s,
    %(not_before_us)s, %(unique_key)s, %(payload)s, %(key_id)s)
ON CONFLICT (namespace, kind, unique_key) WHERE unique_key IS NOT NULL AND state <= 1 DO NOTHING
RETURNING job_id;

-- name: active_id
-- The queued or running job of a kind that has a unique key.
SELECT job_id FROM zibaldone.jobs
WHERE namespace = %(namespace)s AND kind = %(kind)s AND unique_key = %(unique_key)s
  AND unique_key IS NOT NULL AND state <= 1;

-- name: get
-- One job by id, with or without payload and result. A job about a document is seen by those who see the document.
SELECT j.job_id, j.kind, j.state, coalesce(d.document_id, j.subject), j.created_at_us,
       j.not_before_us, j.started_at_us, j.finished_at_us, j.attempts, j.crashes,
       j.cancel_requested, j.progress_done, j.progress_total, j.progress_message,
       CASE WHEN %(whole)s::boolean THEN j.payload END, CASE WHEN %(whole)s::boolean THEN j.result END, j.error, j.key_id, j.job_key
FROM zibaldone.jobs j
LEFT JOIN zibaldone.documents d ON d.document_key = CASE
    WHEN j.kind = ANY(%(document_kinds)s::text[]) AND j.subject ~ '^[0-9]{1,18}$'
    THEN j.subject::bigint END
WHERE j.namespace = %(namespace)s AND j.job_id = %(job_id)s
  AND CASE WHEN d.document_id IS NULL
      THEN j.prefix >= %(tenant_start)s
          AND (%(tenant_end)s::text IS NULL OR j.prefix < %(tenant_end)s)
      ELSE d.document_id >= %(tenant_start)s
          AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s)
      END;

-- name: open_of
-- How many jobs of a caller are queued or running; more than the limit are not counted.
SELECT count(*) FROM (
    SELECT 1 FROM zibaldone.jobs
    WHERE namespace = %(namespace)s AND key_id = %(key_id)s AND key_id IS NOT NULL AND state <= 1
    LIMIT %(limit)s) open;

-- name: page
-- Jobs, newest first, below an id; of a kind or state, if one is given.
SELECT j.job_id, j.kind, j.state, coalesce(d.document_id, j.subject), j.created_at_us,
       j.not_before_us, j.started_at_us, j.finished_at_us, j.attempts, j.crashes,
       j.cancel_requested, j.progress_done, j.progress_total, j.progress_message, NULL,
       NULL, j.error, j.key_id, j.job_key
FROM zibaldone.jobs j
LEFT JOIN zibaldone.documents d ON d.document_key = CASE
    WHEN j.kind = ANY(%(document_kinds)s::text[]) AND j.subject ~ '^[0-9]{1,18}$'
    THEN j.subject::bigint END
WHERE j.namespace = %(namespace)s
  AND j.job_id < %(before)s
  AND (%(kind)s::text IS NULL OR j.kind = %(kind)s)
  AND (%(state)s::bigint IS NULL OR j.state = %(state)s)
  AND CASE WHEN d.document_id IS NULL
      THEN j.prefix >= %(tenant_start)s
          AND (%(tenant_end)s::text IS NULL OR j.prefix < %(tenant_end)s)
      ELSE d.document_id >= %(tenant_start)s
          AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s)
      END
ORDER BY j.job_id DESC LIMIT %(limit)s;

-- name: page_running
-- Jobs that are running, newest first; by the index of those, which are few.
SELECT j.job_id, j.kind, j.state, coalesce(d.document_id, j.subject), j.created_at_us,
       j.not_before_us, j.started_at_us, j.finished_at_us, j.attempts, j.crashes,
       j.cancel_requested, j.progress_done, j.progress_total, j.progress_message, NULL,
       NULL, j.error, j.key_id, j.job_key
FROM zibaldone.jobs j
LEFT JOIN zibaldone.documents d ON d.document_key = CASE
    WHEN j.kind = ANY(%(document_kinds)s::text[]) AND j.subject ~ '^[0-9]{1,18}$'
    THEN j.subject::bigint END
WHERE j.namespace = %(namespace)s
  AND j.job_id < %(before)s
  AND (%(kind)s::text IS NULL OR j.kind = %(kind)s) AND j.state = 1
  AND CASE WHEN d.document_id IS NULL
      THEN j.prefix >= %(tenant_start)s
          AND (%(tenant_end)s::text IS NULL OR j.prefix < %(tenant_end)s)
      ELSE d.document_id >= %(tenant_start)s
          AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s)
      END
ORDER BY j.job_id DESC LIMIT %(limit)s;

-- name: page_ended
-- Jobs that ended in a state, newest first.
SELECT j.job_id, j.kind, j.state, coalesce(d.document_id, j.subject), j.created_at_us,
       j.not_before_us, j.started_at_us, j.finished_at_us, j.attempts, j.crashes,
       j.cancel_requested, j.progress_done, j.progress_total, j.progress_message, NULL,
       NULL, j.error, j.key_id, j.job_key
FROM zibaldone.jobs j
LEFT JOIN zibaldone.documents d ON d.document_key = CASE
    WHEN j.kind = ANY(%(document_kinds)s::text[]) AND j.subject ~ '^[0-9]{1,18}$'
    THEN j.subject::bigint END
WHERE j.namespace = %(namespace)s
  AND j.job_id < %(before)s
  AND (%(kind)s::text IS NULL OR j.kind = %(kind)s) AND j.state = %(state)s AND j.state >= 2
  AND CASE WHEN d.document_id IS NULL
      THEN j.prefix >= %(tenant_start)s
          AND (%(tenant_end)s::text IS NULL OR j.prefix < %(tenant_end)s)
      ELSE d.document_id >= %(tenant_start)s
          AND (%(tenant_end)s::text IS NULL OR d.document_id < %(tenant_end)s)
      END
ORDER BY j.job_id DESC LIMIT %(limit)s;

-- name: cancel
-- End a job that nobody works on; ask the worker of one that runs.
UPDATE zibaldone.jobs SET cancel_requested = 1,
                finished_at_us = CASE WHEN state = 1 THEN NULL ELSE %(now_us)s::bigint END,
                state = CASE WHEN state = 1 THEN 1 ELSE 4 END
WHERE job_key = %(job_key)s AND state <= 2;

-- name: retry
-- Queue a job again that failed, was cancelled or waits, unless another has its unique key by now.
UPDATE zibaldone.jobs SET state = 0, not_before_us = 0, attempts = 0, crashes = 0, cancel_requested = 0,
                finished_at_us = NULL, error = NULL, progress_done = NULL, progress_total = NULL,
                progress_message = NULL
WHERE job_key = %(job_key)s AND state IN (0, 2, 4) AND NOT EXISTS (
    SELECT 1 FROM zibaldone.jobs j
    WHERE j.namespace = jobs.namespace AND j.kind = jobs.kind AND j.unique_key = jobs.unique_key
      AND j.unique_key IS NOT NULL AND j.state <= 1 AND j.job_key <> jobs.job_key
);
