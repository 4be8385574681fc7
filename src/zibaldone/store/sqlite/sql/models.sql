-- name: id
-- The number of a model.
SELECT model_id FROM models WHERE identity = :identity;

-- name: add
-- A model that is new here.
INSERT INTO models (identity, dimensions, created_at_us) VALUES (:identity, :dimensions, :created_at_us)
ON CONFLICT (identity) DO NOTHING;

-- name: all
-- Every model that ever made a vector here, newest first, with how many it has.
SELECT m.model_id, m.identity, m.dimensions,
       (SELECT count(*) FROM vectors v WHERE v.model_id = m.model_id)
FROM models m ORDER BY m.model_id DESC;

-- name: in_use
-- The model of the workers that are alive: they all use the same one.
SELECT model_id, identity FROM index_workers JOIN models USING (model_id)
WHERE alive_until_us BETWEEN :now_us AND :latest_us LIMIT 1;

-- name: remove_expired
-- Workers that did not renew their claim. One from the far future had a wrong clock.
DELETE FROM index_workers WHERE alive_until_us NOT BETWEEN :now_us AND :latest_us;

-- name: is_known
-- Whether a worker is registered.
SELECT EXISTS (SELECT 1 FROM index_workers WHERE worker_key = :worker_key);

-- name: register
-- A worker is alive.
INSERT INTO index_workers (worker_key, model_id, alive_until_us)
VALUES (:worker_key, :model_id, :alive_until_us)
ON CONFLICT (worker_key) DO UPDATE SET alive_until_us = excluded.alive_until_us;

-- name: resign
-- A worker ends.
DELETE FROM index_workers WHERE worker_key = :worker_key;
