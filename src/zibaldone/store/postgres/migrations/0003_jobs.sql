-- The queue and the schedules that feed it.

CREATE TABLE zibaldone.jobs (
    job_key          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id           text COLLATE "C" NOT NULL,
    kind             text COLLATE "C" NOT NULL,
    state            smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 4),
    namespace        text COLLATE "C" NOT NULL,
    prefix           text COLLATE "C" NOT NULL,
    subject          text COLLATE "C",
    created_at_us    bigint NOT NULL,
    not_before_us    bigint NOT NULL,
    unique_key       text COLLATE "C",
    payload          text,
    attempts         bigint NOT NULL DEFAULT 0,
    crashes          bigint NOT NULL DEFAULT 0,
    cancel_requested smallint NOT NULL DEFAULT 0,
    leased_until_us  bigint,
    lease_owner      text COLLATE "C",
    started_at_us    bigint,
    finished_at_us   bigint,
    progress_done    double precision,
    progress_total   double precision,
    progress_message text,
    result           text,
    error            text,
    UNIQUE (namespace, job_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX jobs_queued ON zibaldone.jobs (kind, job_key, not_before_us) WHERE state = 0;

CREATE INDEX jobs_running ON zibaldone.jobs (kind, leased_until_us) WHERE state = 1;

CREATE INDEX jobs_ended ON zibaldone.jobs (state, kind, finished_at_us) WHERE state >= 2;

CREATE INDEX jobs_ended_ids ON zibaldone.jobs (namespace, state, job_id) WHERE state >= 2;

CREATE UNIQUE INDEX jobs_unique ON zibaldone.jobs (namespace, kind, unique_key)
    WHERE unique_key IS NOT NULL AND state <= 1;

CREATE INDEX jobs_by_subject ON zibaldone.jobs (kind, subject, namespace)
    WHERE subject IS NOT NULL;

CREATE TABLE zibaldone.schedules (
    name           text COLLATE "C" PRIMARY KEY,
    cron           text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    payload        text NOT NULL,
    next_run_at_us bigint NOT NULL,
    last_run_at_us bigint
);

-- What /health writes, and takes back, to see whether there is room. Always empty.
CREATE TABLE zibaldone.probe (
    room bytea STORAGE EXTERNAL NOT NULL
);
