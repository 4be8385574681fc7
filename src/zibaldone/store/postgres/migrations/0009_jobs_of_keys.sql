-- Jobs that belong to one caller: nobody else is shown what they were asked and what they answered.
ALTER TABLE zibaldone.jobs ADD COLUMN key_id text COLLATE "C";

CREATE INDEX jobs_open_of_keys ON zibaldone.jobs (namespace, key_id)
    WHERE key_id IS NOT NULL AND state <= 1;
