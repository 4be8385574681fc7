-- Changes that wait for vectors are jobs now, of the kind vectors; the subject is the document's key.
-- Ids sort by time, as those that the program makes. An attempt that was under way did not fail.
INSERT INTO jobs (job_id, kind, state, namespace, prefix, subject, created_at_us, not_before_us,
                  payload, attempts, finished_at_us, error)
SELECT printf('%011x%015x', o.at_us / 1000, o.outbox_key), 'vectors', 2 * o.parked, d.namespace, '',
       CAST(o.document_key AS TEXT), o.at_us, o.not_before_us,
       json_object('revision', o.revision), max(0, o.attempts - (o.leased_until_us > 0)),
       CASE o.parked WHEN 1 THEN o.at_us END, o.error
FROM outbox o JOIN documents d USING (document_key) ORDER BY o.outbox_key;

DROP TABLE outbox;
