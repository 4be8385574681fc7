-- The queue of each namespace apart: they take turns, however much one of them has queued.
CREATE INDEX jobs_queued_apart ON jobs (kind, namespace, job_key, not_before_us) WHERE state = 0;
