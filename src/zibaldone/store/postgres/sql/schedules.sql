-- name: put
-- A schedule. One that is there keeps its next run, unless it runs at other times from now on.
INSERT INTO zibaldone.schedules AS s (name, cron, kind, namespace, payload, next_run_at_us,
    last_run_at_us)
VALUES (%(name)s, %(cron)s, %(kind)s, %(namespace)s, %(payload)s, %(next_run_at_us)s,
    %(last_run_at_us)s)
ON CONFLICT (name) DO UPDATE SET
    next_run_at_us = CASE WHEN s.cron = excluded.cron THEN s.next_run_at_us
                          ELSE excluded.next_run_at_us END,
    cron = excluded.cron, kind = excluded.kind, namespace = excluded.namespace,
    payload = excluded.payload;

-- name: remove
-- Remove a schedule; jobs that it added stay.
DELETE FROM zibaldone.schedules WHERE name = %(name)s RETURNING name;

-- name: all
-- Every schedule.
SELECT name, cron, kind, namespace, payload, next_run_at_us, last_run_at_us
FROM zibaldone.schedules ORDER BY name;

-- name: advance
-- Set the next run, unless another process did.
UPDATE zibaldone.schedules SET next_run_at_us = %(next_run_at_us)s,
                               last_run_at_us = coalesce(%(ran_at_us)s, last_run_at_us)
WHERE name = %(name)s AND next_run_at_us = %(expected_us)s
RETURNING name;
