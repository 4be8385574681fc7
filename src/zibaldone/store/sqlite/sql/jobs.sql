-- name: add
-- A job without a unique key: what a document's write adds, so it costs as little as can be.
INSERT INTO jobs (job_id, kind, namespace, prefix, subject, created_at_us, not_before_us, payload,
                  key_id)
VALUES (:job_id, :kind, :namespace, :prefix, :subject, :created_at_us, :not_before_us, :payload,
        :key_id);

-- name: add_unique
-- A job; one whose unique key is taken by a queued or running job of its kind is left out.
INSERT INTO jobs (job_id, kind, namespace, prefix, subject, created_at_us, not_before_us,
                  unique_key, payload, key_id)
VALUES (:job_id, :kind, :namespace, :prefix, :subject, :created_at_us, :not_before_us,
        :unique_key, :payload, :key_id)
ON CONFLICT (namespace, kind, unique_key) WHERE unique_key IS NOT NULL AND state <= 1 DO NOTHING;

-- name: active_id
-- The queued or running job of a kind that has a unique key.
SELECT job_id FROM jobs
WHERE namespace = :namespace AND kind = :kind AND unique_key = :unique_key
  AND unique_key IS NOT NULL AND state <= 1;

-- name: get
-- One job by id, with or without payload and result. A job about a document is seen by those who see the document.
SELECT j.job_id, j.kind, j.state, coalesce(d.document_id, j.subject), j.created_at_us,
       j.not_before_us, j.started_at_us, j.finished_at_us, j.attempts, j.crashes,
       j.cancel_requested, j.progress_done, j.progress_total, j.progress_message,
       CASE WHEN :whole THEN j.payload END, CASE WHEN :whole THEN j.result END, j.error, j.key_id, j.job_key
FROM jobs j
LEFT JOIN documents d ON d.document_key = CASE
    WHEN j.kind IN (SELECT value FROM json_each(:document_kinds)) THEN CAST(j.subject AS INTEGER) END
WHERE j.namespace = :namespace AND j.job_id = :job_id
  AND CASE WHEN d.document_id IS NULL
      THEN j.prefix >= :tenant_start AND (:tenant_end IS NULL OR j.prefix < :tenant_end)
      ELSE d.document_id >= :tenant_start AND (:tenant_end IS NULL OR d.document_id < :tenant_end)
      END;

-- name: open_of
-- How many jobs of a caller are queued or running; more than the limit are not counted.
SELECT count(*) FROM (
    SELECT 1 FROM jobs
    WHERE namespace = :namespace AND key_id = :key_id AND key_id IS NOT NULL AND state <= 1
    LIMIT :limit);

-- name: page
-- Jobs, newest first, below an id; of a kind or state, if one is given.
SELECT j.job_id, j.kind, j.state, coalesce(d.document_id, j.subject), j.created_at_us,
       j.not_before_us, j.started_at_us, j.finished_at_us, j.attempts, j.crashes,
       j.cancel_requested, j.progress_done, j.progress_total, j.progress_message, NULL,
       NULL, j.error, j.key_id, j.job_key
FROM jobs j
LEFT JOIN documents d ON d.document_key = CASE
    WHEN j.kind IN (SELECT value FROM json_each(:document_kinds)) THEN CAST(j.subject AS INTEGER) END
WHERE j.namespace = :namespace
  AND j.job_id < :before
  AND (:kind IS NULL OR j.kind = :kind) AND (:state IS NULL OR j.state = :state)
  AND CASE WHEN d.document_id IS NULL
      THEN j.prefix >= :tenant_start AND (:tenant_end IS NULL OR j.prefix < :tenant_end)
      ELSE d.document_id >= :tenant_start AND (:tenant_end IS NULL OR d.document_id < :tenant_end)
      END
ORDER BY j.job_id DESC LIMIT :limit;

-- name: page_running
-- Jobs that are running, newest first; by the index of those, which are few.
SELECT j.job_id, j.kind, j.state, coalesce(d.document_id, j.subject), j.created_at_us,
       j.not_before_us, j.started_at_us, j.finished_at_us, j.attempts, j.crashes,
       j.cancel_requested, j.progress_done, j.progress_total, j.progress_message, NULL,
       NULL, j.error, j.key_id, j.job_key
FROM jobs j INDEXED BY jobs_running
LEFT JOIN documents d ON d.document_key = CASE
    WHEN j.kind IN (SELECT value FROM json_each(:document_kinds)) THEN CAST(j.subject AS INTEGER) END
WHERE j.namespace = :namespace
  AND j.job_id < :before
  AND (:kind IS NULL OR j.kind = :kind) AND j.state = 1
  AND CASE WHEN d.document_id IS NULL
      THEN j.prefix >= :tenant_start AND (:tenant_end IS NULL OR j.prefix < :tenant_end)
      ELSE d.document_id >= :tenant_start AND (:tenant_end IS NULL OR d.document_id < :tenant_end)
      END
ORDER BY j.job_id DESC LIMIT :limit;

-- name: page_ended
-- Jobs that ended in a state, newest first.
SELECT j.job_id, j.kind, j.state, coalesce(d.document_id, j.subject), j.created_at_us,
       j.not_before_us, j.started_at_us, j.finished_at_us, j.attempts, j.crashes,
       j.cancel_requested, j.progress_done, j.progress_total, j.progress_message, NULL,
       NULL, j.error, j.key_id, j.job_key
FROM jobs j
LEFT JOIN documents d ON d.document_key = CASE
    WHEN j.kind IN (SELECT value FROM json_each(:document_kinds)) THEN CAST(j.subject AS INTEGER) END
WHERE j.namespace = :namespace
  AND j.job_id < :before
  AND (:kind IS NULL OR j.kind = :kind) AND j.state = :state AND j.state >= 2
  AND CASE WHEN d.document_id IS NULL
      THEN j.prefix >= :tenant_start AND (:tenant_end IS NULL OR j.prefix < :tenant_end)
      ELSE d.document_id >= :tenant_start AND (:tenant_end IS NULL OR d.document_id < :tenant_end)
      END
ORDER BY j.job_id DESC LIMIT :limit;

-- name: cancel
-- End a job that nobody works on; ask the worker of one that runs.
UPDATE jobs SET cancel_requested = 1,
                finished_at_us = CASE WHEN state = 1 THEN NULL ELSE :now_us END,
                state = CASE WHEN state = 1 THEN 1 ELSE 4 END
WHERE job_key = :job_key AND state <= 2;

-- name: retry
-- Queue a job again that failed, was cancelled or waits, unless another has its unique key by now.
UPDATE jobs SET state = 0, not_before_us = 0, attempts = 0, crashes = 0, cancel_requested = 0,
                finished_at_us = NULL, error = NULL, progress_done = NULL, progress_total = NULL,
                progress_message = NULL
WHERE job_key = :job_key AND state IN (0, 2, 4) AND NOT EXISTS (
    SELECT 1 FROM jobs j
    WHERE j.namespace = jobs.namespace AND j.kind = jobs.kind AND j.unique_key = jobs.unique_key
      AND j.unique_key IS NOT NULL AND j.state <= 1 AND j.job_key <> jobs.job_key
);
