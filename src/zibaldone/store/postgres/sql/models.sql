-- name: id
-- The number of a model.
SELECT model_id FROM zibaldone.models WHERE identity = %(identity)s;

-- name: add
-- A model that is new here.
INSERT INTO zibaldone.models (identity, dimensions, created_at_us)
VALUES (%(identity)s, %(dimensions)s, %(created_at_us)s)
ON CONFLICT (identity) DO NOTHING;

-- name: all
-- Every model that ever made a vector here, newest first, with how many it has.
SELECT m.model_id, m.identity, m.dimensions,
       (SELECT count(*) FROM zibaldone.vectors v WHERE v.model_id = m.model_id)
FROM zibaldone.models m ORDER BY m.model_id DESC;

-- name: in_use
-- The model of the workers that are alive: they all use the same one.
SELECT model_id, identity FROM zibaldone.index_workers JOIN zibaldone.models USING (model_id)
WHERE alive_until_us BETWEEN %(now_us)s AND %(latest_us)s LIMIT 1;

-- name: remove_expired
-- Workers that did not renew their claim. One from the far future had a wrong clock.
DELETE FROM zibaldone.index_workers WHERE alive_until_us NOT BETWEEN %(now_us)s AND %(latest_us)s;

-- name: is_known
-- Whether a worker is registered.
SELECT EXISTS (SELECT 1 FROM zibaldone.index_workers WHERE worker_key = %(worker_key)s);

-- name: register
-- A worker is alive.
INSERT INTO zibaldone.index_workers (worker_key, model_id, alive_until_us)
VALUES (%(worker_key)s, %(model_id)s, %(alive_until_us)s)
ON CONFLICT (worker_key) DO UPDATE SET alive_until_us = excluded.alive_until_us;

-- name: resign
-- A worker ends.
DELETE FROM zibaldone.index_workers WHERE worker_key = %(worker_key)s;
