-- Jobs of one subject belong together within their namespace only.
DROP INDEX jobs_by_subject;

CREATE INDEX jobs_by_subject ON jobs (kind, subject, namespace) WHERE subject IS NOT NULL;
