-- name: lock
-- One process builds at a time; another one finds the work done when it asks again.
SELECT pg_try_advisory_xact_lock(hashtextextended('zibaldone/vector indexes', 0));

-- name: models
-- Each model with its index, if it has one, and whether it has few vectors, or none.
SELECT m.model_id, m.dimensions,
       (SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'),
       (SELECT i.indisvalid FROM pg_index i
        WHERE i.indexrelid = to_regclass('zibaldone.vectors_nearest_' || m.model_id)),
       (SELECT count(*) FROM (SELECT 1 FROM zibaldone.vectors v WHERE v.model_id = m.model_id
                              LIMIT %(limit)s) counted)
FROM zibaldone.models m ORDER BY m.model_id DESC;

-- name: session
-- A build takes as long as it takes, and is several times as fast in memory.
SELECT set_config('statement_timeout', '0', false),
       set_config('maintenance_work_mem', greatest(524288, (
           SELECT setting::bigint FROM pg_settings WHERE name = 'maintenance_work_mem'))::text,
           false);

-- name: alone
-- Without helpers: they need memory that containers often do not share.
SELECT set_config('max_parallel_maintenance_workers', '0', false);
