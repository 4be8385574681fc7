-- name: abandoned
-- The oldest job whose lease ran out. One that ends too late was given by a clock that was ahead.
SELECT job_key, subject, cancel_requested FROM zibaldone.jobs
WHERE kind = %(kind)s AND state = 1 AND (leased_until_us <= %(now_us)s OR leased_until_us > %(latest_us)s)
ORDER BY job_key LIMIT 1
FOR UPDATE SKIP LOCKED;

-- name: cancel_abandoned
-- The worker of a job that was to be cancelled has ended.
UPDATE zibaldone.jobs SET state = 4, finished_at_us = %(now_us)s, lease_owner = NULL, leased_until_us = NULL
WHERE job_key = %(job_key)s;

-- name: leased
-- How many jobs of a kind are being worked on.
SELECT count(*) FROM zibaldone.jobs
WHERE kind = %(kind)s AND state = 1 AND leased_until_us > %(now_us)s AND leased_until_us <= %(latest_us)s;

-- name: leased_by_key
-- The same of each caller that has some.
SELECT key_id, count(*) FROM zibaldone.jobs
WHERE kind = %(kind)s AND state = 1 AND leased_until_us > %(now_us)s AND leased_until_us <= %(latest_us)s
  AND key_id IS NOT NULL
GROUP BY key_id;

-- name: queued_namespaces
-- The namespaces that have jobs of a kind in the queue, each found by a step in the index.
WITH RECURSIVE known (namespace) AS (
    SELECT (SELECT min(namespace) FROM zibaldone.jobs WHERE kind = %(kind)s AND state = 0)
    UNION ALL
    SELECT (SELECT min(j.namespace) FROM zibaldone.jobs j
            WHERE j.kind = %(kind)s AND j.state = 0 AND j.namespace > known.namespace)
    FROM known WHERE known.namespace IS NOT NULL
)
SELECT namespace FROM known WHERE namespace IS NOT NULL;

-- name: due
-- The oldest jobs of a namespace whose time has come, without those of keys that have enough.
-- A back-off that ends too late is from a clock that was ahead.
SELECT job_key, NULL, key_id FROM zibaldone.jobs
WHERE kind = %(kind)s AND namespace = %(namespace)s AND state = 0 AND (
    not_before_us <= %(now_us)s OR (not_before_us > %(backoff_end_us)s AND error IS NOT NULL))
  AND (%(full_keys)s::text[] IS NULL OR key_id IS NULL
    OR key_id <> ALL(%(full_keys)s::text[]))
ORDER BY job_key LIMIT %(limit)s
FOR UPDATE SKIP LOCKED;

-- name: due_apart
-- The same, without those of a subject that is being worked on.
SELECT o.job_key, o.subject, o.key_id FROM zibaldone.jobs o
WHERE o.kind = %(kind)s AND o.namespace = %(namespace)s AND o.state = 0 AND (
    o.not_before_us <= %(now_us)s OR (o.not_before_us > %(backoff_end_us)s AND o.error IS NOT NULL))
  AND (%(full_keys)s::text[] IS NULL OR o.key_id IS NULL
    OR o.key_id <> ALL(%(full_keys)s::text[]))
  AND NOT EXISTS (
    SELECT 1 FROM zibaldone.jobs l
    WHERE l.kind = o.kind AND l.subject = o.subject AND l.namespace = o.namespace AND l.state = 1
      AND l.leased_until_us > %(now_us)s AND l.leased_until_us <= %(latest_us)s)
ORDER BY o.job_key LIMIT %(limit)s
FOR UPDATE OF o SKIP LOCKED;

-- name: take
-- Lease jobs. Those that are running already were abandoned by their worker.
UPDATE zibaldone.jobs SET crashes = crashes + (state = 1)::integer, state = 1, leased_until_us = %(until_us)s,
                lease_owner = %(owner)s, started_at_us = %(now_us)s
WHERE job_key = ANY(%(keys)s::bigint[])
RETURNING job_key, job_id, kind, namespace, prefix, subject, payload, attempts, crashes,
    key_id;

-- name: take_subjects
-- The same, with all other jobs of their subjects, each in its namespace.
-- The state is asked for twice: the second time of the row as it is once it is locked.
UPDATE zibaldone.jobs SET crashes = crashes + (state = 1)::integer, state = 1,
    leased_until_us = %(until_us)s, lease_owner = %(owner)s, started_at_us = %(now_us)s
WHERE job_key IN (
    SELECT j.job_key FROM zibaldone.jobs c JOIN zibaldone.jobs j
    ON j.kind = c.kind AND j.subject = c.subject AND j.namespace = c.namespace
    WHERE c.job_key = ANY(%(keys)s::bigint[]) AND j.state <= 1)
  AND state <= 1
RETURNING job_key, job_id, kind, namespace, prefix, subject, payload, attempts, crashes,
    key_id;

-- name: has_abandoned
-- Whether a lease ran out.
SELECT EXISTS (
    SELECT 1 FROM zibaldone.jobs WHERE kind = %(kind)s AND state = 1
      AND (leased_until_us <= %(now_us)s OR leased_until_us > %(latest_us)s));

-- name: has_due
-- Whether the time of a job has come; of keys that have enough, none counts.
SELECT EXISTS (
    SELECT 1 FROM zibaldone.jobs WHERE kind = %(kind)s AND state = 0 AND (
        not_before_us <= %(now_us)s OR (not_before_us > %(backoff_end_us)s AND error IS NOT NULL))
      AND (%(full_keys)s::text[] IS NULL OR key_id IS NULL
        OR key_id <> ALL(%(full_keys)s::text[])));

-- name: renew
-- Hold leases longer; whether their cancellation is wanted.
UPDATE zibaldone.jobs SET leased_until_us = %(until_us)s
WHERE job_key = ANY(%(keys)s::bigint[]) AND state = 1 AND lease_owner = %(owner)s
RETURNING job_key, cancel_requested;

-- name: held
-- Those of some jobs that are leased under a token; whether their cancellation is wanted.
SELECT job_key, cancel_requested FROM zibaldone.jobs
WHERE job_key = ANY(%(keys)s::bigint[]) AND state = 1 AND lease_owner = %(owner)s;

-- name: release
-- Give jobs back as they were, or, where a part is done, with a clean slate.
UPDATE zibaldone.jobs SET state = CASE cancel_requested WHEN 1 THEN 4 ELSE 0 END,
    finished_at_us = CASE cancel_requested WHEN 1 THEN %(now_us)s::bigint END,
    lease_owner = NULL, leased_until_us = NULL,
    attempts = CASE WHEN %(has_progressed)s THEN 0 ELSE attempts END,
    crashes = CASE WHEN %(has_progressed)s THEN 0 ELSE crashes END,
    error = CASE WHEN %(has_progressed)s THEN NULL ELSE error END
WHERE job_key = ANY(%(keys)s::bigint[]) AND state = 1 AND lease_owner = %(owner)s
RETURNING job_key;

-- name: forget
-- Forget jobs that are done.
DELETE FROM zibaldone.jobs
WHERE job_key = ANY(%(keys)s::bigint[]) AND state = 1 AND lease_owner = %(owner)s
RETURNING job_key;

-- name: end
-- Jobs are done or cancelled, and kept to be looked at for a while.
UPDATE zibaldone.jobs SET state = %(state)s, finished_at_us = %(now_us)s, result = %(result)s, error = NULL,
                lease_owner = NULL, leased_until_us = NULL
WHERE job_key = ANY(%(keys)s::bigint[]) AND state = 1 AND lease_owner = %(owner)s
RETURNING job_key;

-- name: set_back
-- Attempts did not succeed: queue the jobs again, unless their cancellation is wanted.
UPDATE zibaldone.jobs j SET state = CASE j.cancel_requested WHEN 1 THEN 4 ELSE 0 END,
    finished_at_us = CASE j.cancel_requested WHEN 1 THEN %(now_us)s::bigint END,
    not_before_us = s.not_before_us, error = s.error,
    attempts = j.attempts + %(attempts)s, crashes = 0, lease_owner = NULL, leased_until_us = NULL
FROM unnest(%(keys)s::bigint[], %(owners)s::text[], %(not_before_us)s::bigint[],
    %(errors)s::text[]) s (job_key, owner, not_before_us, error)
WHERE j.job_key = s.job_key AND j.state = 1 AND j.lease_owner = s.owner
RETURNING j.job_key;

-- name: park
-- Set jobs aside with their errors, until somebody retries or cancels them.
UPDATE zibaldone.jobs j SET state = 2, finished_at_us = %(now_us)s, error = s.error,
    attempts = j.attempts + %(attempts)s, lease_owner = NULL, leased_until_us = NULL
FROM unnest(%(keys)s::bigint[], %(owners)s::text[], %(errors)s::text[]) s (job_key, owner, error)
WHERE j.job_key = s.job_key AND j.state = 1 AND j.lease_owner = s.owner
RETURNING j.job_key;

-- name: forget_ended
-- Jobs that were set aside or cancelled, of subjects with nothing left to do.
DELETE FROM zibaldone.jobs j
USING unnest(%(namespaces)s::text[], %(subjects)s::text[]) s (namespace, subject)
WHERE j.kind = %(kind)s AND j.subject = s.subject AND j.namespace = s.namespace
  AND j.state IN (2, 4);

-- name: progress
-- How far a job is; whether its cancellation is wanted.
UPDATE zibaldone.jobs SET progress_done = %(done)s, progress_total = %(total)s, progress_message = %(message)s
WHERE job_key = %(job_key)s AND state = 1 AND lease_owner = %(owner)s
RETURNING cancel_requested;

-- name: pending
-- How many jobs of a kind, up to a time, are still to be done; and those from after now.
SELECT (SELECT count(*) FROM zibaldone.jobs
        WHERE kind = %(kind)s AND state = 0
          AND (created_at_us <= %(through_us)s OR created_at_us > %(now_us)s))
     + (SELECT count(*) FROM zibaldone.jobs
        WHERE kind = %(kind)s AND state = 1
          AND (created_at_us <= %(through_us)s OR created_at_us > %(now_us)s));

-- name: purge
-- Forget some jobs of a kind that ended long ago.
DELETE FROM zibaldone.jobs WHERE job_key IN (
    SELECT job_key FROM zibaldone.jobs
    WHERE state = %(state)s AND state >= 2 AND kind = %(kind)s AND finished_at_us < %(before_us)s
    ORDER BY finished_at_us LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING job_key;
