-- name: abandoned
-- The oldest job whose lease ran out. One that ends too late was given by a clock that was ahead.
SELECT job_key, subject, cancel_requested FROM jobs
WHERE kind = :kind AND state = 1 AND (leased_until_us <= :now_us OR leased_until_us > :latest_us)
ORDER BY job_key LIMIT 1;

-- name: cancel_abandoned
-- The worker of a job that was to be cancelled has ended.
UPDATE jobs SET state = 4, finished_at_us = :now_us, lease_owner = NULL, leased_until_us = NULL
WHERE job_key = :job_key;

-- name: leased
-- How many jobs of a kind are being worked on.
SELECT count(*) FROM jobs
WHERE kind = :kind AND state = 1 AND leased_until_us > :now_us AND leased_until_us <= :latest_us;

-- name: leased_by_key
-- The same of each caller that has some.
SELECT key_id, count(*) FROM jobs
WHERE kind = :kind AND state = 1 AND leased_until_us > :now_us AND leased_until_us <= :latest_us
  AND key_id IS NOT NULL
GROUP BY key_id;

-- name: queued_namespaces
-- The namespaces that have jobs of a kind in the queue, each found by a step in the index.
WITH RECURSIVE known (namespace) AS (
    SELECT (SELECT min(namespace) FROM jobs WHERE kind = :kind AND state = 0)
    UNION ALL
    SELECT (SELECT min(j.namespace) FROM jobs j
            WHERE j.kind = :kind AND j.state = 0 AND j.namespace > known.namespace)
    FROM known WHERE known.namespace IS NOT NULL
)
SELECT namespace FROM known WHERE namespace IS NOT NULL;

-- name: due
-- The oldest jobs of a namespace whose time has come, without those of keys that have enough.
-- A back-off that ends too late is from a clock that was ahead.
SELECT job_key, NULL, key_id FROM jobs
WHERE kind = :kind AND namespace = :namespace AND state = 0 AND (
    not_before_us <= :now_us OR (not_before_us > :backoff_end_us AND error IS NOT NULL))
  AND (:full_keys IS NULL OR key_id IS NULL
    OR key_id NOT IN (SELECT value FROM json_each(:full_keys)))
ORDER BY job_key LIMIT :limit;

-- name: due_apart
-- The same, without those of a subject that is being worked on.
SELECT o.job_key, o.subject, o.key_id FROM jobs o
WHERE o.kind = :kind AND o.namespace = :namespace AND o.state = 0 AND (
    o.not_before_us <= :now_us OR (o.not_before_us > :backoff_end_us AND o.error IS NOT NULL))
  AND (:full_keys IS NULL OR o.key_id IS NULL
    OR o.key_id NOT IN (SELECT value FROM json_each(:full_keys)))
  AND NOT EXISTS (
    SELECT 1 FROM jobs l INDEXED BY jobs_by_subject
    WHERE l.kind = o.kind AND l.subject = o.subject AND l.namespace = o.namespace AND l.state = 1
      AND l.leased_until_us > :now_us AND l.leased_until_us <= :latest_us)
ORDER BY o.job_key LIMIT :limit;

-- name: take
-- Lease jobs. Those that are running already were abandoned by their worker.
UPDATE jobs SET crashes = crashes + (state = 1), state = 1, leased_until_us = :until_us,
                lease_owner = :owner, started_at_us = :now_us
WHERE job_key IN (SELECT value FROM json_each(:keys))
RETURNING job_key, job_id, kind, namespace, prefix, subject, payload, attempts, crashes,
    key_id;

-- name: take_subjects
-- The same, with all other jobs of their subjects, each in its namespace.
UPDATE jobs SET crashes = crashes + (state = 1), state = 1, leased_until_us = :until_us,
                lease_owner = :owner, started_at_us = :now_us
WHERE job_key IN (
    SELECT j.job_key FROM json_each(:keys) k CROSS JOIN jobs c ON c.job_key = k.value
    CROSS JOIN jobs j ON j.kind = c.kind AND j.subject = c.subject AND j.namespace = c.namespace
    WHERE j.state <= 1)
RETURNING job_key, job_id, kind, namespace, prefix, subject, payload, attempts, crashes,
    key_id;

-- name: has_abandoned
-- Whether a lease ran out.
SELECT EXISTS (
    SELECT 1 FROM jobs WHERE kind = :kind AND state = 1
      AND (leased_until_us <= :now_us OR leased_until_us > :latest_us));

-- name: has_due
-- Whether the time of a job has come; of keys that have enough, none counts.
SELECT EXISTS (
    SELECT 1 FROM jobs WHERE kind = :kind AND state = 0 AND (
        not_before_us <= :now_us OR (not_before_us > :backoff_end_us AND error IS NOT NULL))
      AND (:full_keys IS NULL OR key_id IS NULL
        OR key_id NOT IN (SELECT value FROM json_each(:full_keys))));

-- name: renew
-- Hold leases longer; whether their cancellation is wanted.
UPDATE jobs SET leased_until_us = :until_us
WHERE job_key IN (SELECT value FROM json_each(:keys)) AND state = 1 AND lease_owner = :owner
RETURNING job_key, cancel_requested;

-- name: held
-- Those of some jobs that are leased under a token; whether their cancellation is wanted.
SELECT job_key, cancel_requested FROM jobs
WHERE job_key IN (SELECT value FROM json_each(:keys)) AND state = 1 AND lease_owner = :owner;

-- name: release
-- Give jobs back as they were, or, where a part is done, with a clean slate.
UPDATE jobs SET state = CASE cancel_requested WHEN 1 THEN 4 ELSE 0 END,
                finished_at_us = CASE cancel_requested WHEN 1 THEN :now_us END,
                lease_owner = NULL, leased_until_us = NULL,
                attempts = CASE :has_progressed WHEN 1 THEN 0 ELSE attempts END,
                crashes = CASE :has_progressed WHEN 1 THEN 0 ELSE crashes END,
                error = CASE :has_progressed WHEN 1 THEN NULL ELSE error END
WHERE job_key IN (SELECT value FROM json_each(:keys)) AND state = 1 AND lease_owner = :owner
RETURNING job_key;

-- name: forget
-- Forget jobs that are done.
DELETE FROM jobs
WHERE job_key IN (SELECT value FROM json_each(:keys)) AND state = 1 AND lease_owner = :owner
RETURNING job_key;

-- name: end
-- Jobs are done or cancelled, and kept to be looked at for a while.
UPDATE jobs SET state = :state, finished_at_us = :now_us, result = :result, error = NULL,
                lease_owner = NULL, leased_until_us = NULL
WHERE job_key IN (SELECT value FROM json_each(:keys)) AND state = 1 AND lease_owner = :owner
RETURNING job_key;

-- name: set_back
-- Attempts did not succeed: queue the jobs again, unless their cancellation is wanted.
UPDATE jobs SET state = CASE cancel_requested WHEN 1 THEN 4 ELSE 0 END,
                finished_at_us = CASE cancel_requested WHEN 1 THEN :now_us END,
                not_before_us = s.value ->> 2, error = s.value ->> 3,
                attempts = attempts + :attempts, crashes = 0,
                lease_owner = NULL, leased_until_us = NULL
FROM json_each(:setbacks) s
WHERE job_key = s.value ->> 0 AND state = 1 AND lease_owner = s.value ->> 1
RETURNING job_key;

-- name: park
-- Set jobs aside with their errors, until somebody retries or cancels them.
UPDATE jobs SET state = 2, finished_at_us = :now_us, error = s.value ->> 3,
                attempts = attempts + :attempts, lease_owner = NULL, leased_until_us = NULL
FROM json_each(:setbacks) s
WHERE job_key = s.value ->> 0 AND state = 1 AND lease_owner = s.value ->> 1
RETURNING job_key;

-- name: forget_ended
-- Jobs that were set aside or cancelled, of subjects (namespace, subject) with nothing left to do.
DELETE FROM jobs WHERE job_key IN (
    SELECT j.job_key FROM json_each(:subjects) s CROSS JOIN jobs j
    ON j.kind = :kind AND j.subject = s.value ->> 1 AND j.namespace = s.value ->> 0
    WHERE j.state IN (2, 4));

-- name: progress
-- How far a job is; whether its cancellation is wanted.
UPDATE jobs SET progress_done = :done, progress_total = :total, progress_message = :message
WHERE job_key = :job_key AND state = 1 AND lease_owner = :owner
RETURNING cancel_requested;

-- name: pending
-- How many jobs of a kind, up to a time, are still to be done; and those from after now.
SELECT (SELECT count(*) FROM jobs
        WHERE kind = :kind AND state = 0
          AND (created_at_us <= :through_us OR created_at_us > :now_us))
     + (SELECT count(*) FROM jobs
        WHERE kind = :kind AND state = 1
          AND (created_at_us <= :through_us OR created_at_us > :now_us));

-- name: purge
-- Forget some jobs of a kind that ended long ago.
DELETE FROM jobs WHERE job_key IN (
    SELECT job_key FROM jobs
    WHERE state = :state AND state >= 2 AND kind = :kind AND finished_at_us < :before_us
    ORDER BY finished_at_us LIMIT :limit);
