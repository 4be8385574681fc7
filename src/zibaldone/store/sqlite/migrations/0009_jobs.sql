-- Work that is done later. A worker leases a job: it holds it until leased_until_us, under a token
-- (lease_owner) that tells its lease from every other. state: 0 queued, 1 running, 2 parked (failed
-- for good), 3 done, 4 cancelled. It is a number because a document's write pays for every index
-- whose condition it must look at.
CREATE TABLE jobs (
    job_key          INTEGER PRIMARY KEY,
    job_id           TEXT NOT NULL,
    kind             TEXT NOT NULL,
    state            INTEGER NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 4),
    namespace        TEXT NOT NULL,
    prefix           TEXT NOT NULL,
    subject          TEXT,
    created_at_us    INTEGER NOT NULL,
    not_before_us    INTEGER NOT NULL,
    unique_key       TEXT,
    payload          TEXT,
    attempts         INTEGER NOT NULL DEFAULT 0,
    crashes          INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    leased_until_us  INTEGER,
    lease_owner      TEXT,
    started_at_us    INTEGER,
    finished_at_us   INTEGER,
    progress_done    REAL,
    progress_total   REAL,
    progress_message TEXT,
    result           TEXT,
    error            TEXT,
    UNIQUE (namespace, job_id)
) STRICT;

CREATE INDEX jobs_queued ON jobs (kind, job_key, not_before_us) WHERE state = 0;
CREATE INDEX jobs_running ON jobs (kind, leased_until_us) WHERE state = 1;
CREATE INDEX jobs_ended ON jobs (state, kind, finished_at_us) WHERE state >= 2;
CREATE INDEX jobs_ended_ids ON jobs (namespace, state, job_id) WHERE state >= 2;
CREATE INDEX jobs_by_subject ON jobs (kind, subject) WHERE subject IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique ON jobs (namespace, kind, unique_key)
    WHERE unique_key IS NOT NULL AND state <= 1;

-- Jobs that are added again and again, at times given as a cron expression in UTC.
CREATE TABLE schedules (
    name           TEXT PRIMARY KEY,
    cron           TEXT NOT NULL,
    kind           TEXT NOT NULL,
    namespace      TEXT NOT NULL,
    payload        TEXT NOT NULL CHECK (json_valid(payload)),
    next_run_at_us INTEGER NOT NULL,
    last_run_at_us INTEGER
) STRICT, WITHOUT ROWID;
