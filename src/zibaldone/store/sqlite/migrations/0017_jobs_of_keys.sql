-- Jobs that belong to one caller: nobody else is shown what they were asked and what they answered.
ALTER TABLE jobs ADD COLUMN key_id TEXT;

CREATE INDEX jobs_open_of_keys ON jobs (namespace, key_id) WHERE key_id IS NOT NULL AND state <= 1;
