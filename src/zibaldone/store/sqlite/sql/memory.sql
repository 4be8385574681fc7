-- name: forget_episode
-- Before it is stored anew, or because its document was deleted.
DELETE FROM memory_episodes WHERE document_key = :document_key AND namespace = :namespace;

-- name: forget_entities
-- The same for what it mentions.
DELETE FROM memory_entities WHERE document_key = :document_key AND namespace = :namespace;

-- name: forget_facts
-- The same for what it states.
DELETE FROM memory_facts WHERE document_key = :document_key AND namespace = :namespace;

-- name: put_episode
-- An episode; its document is of the namespace.
INSERT INTO memory_episodes (document_key, namespace, group_id, episode_id, valid_at_us)
VALUES (:document_key, :namespace, :group_id, :episode_id, :valid_at_us);

-- name: put_entities
-- What an episode mentions.
INSERT INTO memory_entities
    (document_key, entity_key, namespace, group_id, name, label, valid_at_us)
SELECT :document_key, e.value ->> 0, :namespace, :group_id, e.value ->> 1, e.value ->> 2,
       :valid_at_us
FROM json_each(:entities) e;

-- name: put_facts
-- What an episode states.
INSERT INTO memory_facts (document_key, fact_index, namespace, group_id, subject, relation, object,
    slot, fact, valid_at_us)
SELECT :document_key, e.key, :namespace, :group_id, e.value ->> 0, e.value ->> 1, e.value ->> 2,
       e.value ->> 3, e.value ->> 4, e.value ->> 5
FROM json_each(:facts) e;

-- name: find
-- Episodes with an id, mostly one.
SELECT d.document_id, e.group_id, e.episode_id, e.valid_at_us
FROM memory_episodes e CROSS JOIN documents d USING (document_key)
WHERE e.namespace = :namespace AND e.episode_id = :episode_id
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
ORDER BY e.document_key;

-- name: latest
-- The last episodes of a group up to a time.
SELECT d.document_id, e.group_id, e.episode_id, e.valid_at_us
FROM memory_episodes e CROSS JOIN documents d USING (document_key)
WHERE e.namespace = :namespace AND e.group_id = :group_id AND e.valid_at_us <= :until_us
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
ORDER BY e.valid_at_us DESC, e.document_key DESC LIMIT :limit;

-- name: groups
-- The groups, with the number of their episodes.
SELECT e.group_id, count(*)
FROM memory_episodes e CROSS JOIN documents d USING (document_key)
WHERE e.namespace = :namespace
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
GROUP BY e.group_id ORDER BY e.group_id;

-- name: around
-- What stands beside some episodes, two steps each way.
SELECT d.document_id, e.group_id, e.episode_id, e.valid_at_us,
    (SELECT document_key FROM memory_episodes b
     WHERE b.namespace = e.namespace AND b.group_id = e.group_id
       AND (b.valid_at_us, b.document_key) < (e.valid_at_us, e.document_key)
     ORDER BY b.valid_at_us DESC, b.document_key DESC LIMIT 1),
    (SELECT document_key FROM memory_episodes b
     WHERE b.namespace = e.namespace AND b.group_id = e.group_id
       AND (b.valid_at_us, b.document_key) < (e.valid_at_us, e.document_key)
     ORDER BY b.valid_at_us DESC, b.document_key DESC LIMIT 1 OFFSET 1),
    (SELECT document_key FROM memory_episodes b
     WHERE b.namespace = e.namespace AND b.group_id = e.group_id
       AND (b.valid_at_us, b.document_key) > (e.valid_at_us, e.document_key)
     ORDER BY b.valid_at_us, b.document_key LIMIT 1),
    (SELECT document_key FROM memory_episodes b
     WHERE b.namespace = e.namespace AND b.group_id = e.group_id
       AND (b.valid_at_us, b.document_key) > (e.valid_at_us, e.document_key)
     ORDER BY b.valid_at_us, b.document_key LIMIT 1 OFFSET 1)
FROM json_each(:document_ids) i
CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = i.value
CROSS JOIN memory_episodes e USING (document_key)
WHERE d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: ids
-- Documents by their keys.
SELECT d.document_key, d.document_id
FROM json_each(:document_keys) k CROSS JOIN documents d ON d.document_key = k.value
WHERE d.namespace = :namespace
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);

-- name: entities_of
-- What some episodes mention.
SELECT d.document_id, e.entity_key, e.name, e.label
FROM json_each(:document_ids) i
CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = i.value
CROSS JOIN memory_entities e USING (document_key)
WHERE d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
ORDER BY i.key, e.entity_key;

-- name: nodes
-- Entities of a group, over all that mention them.
SELECT m.entity_key, min(m.name), m.label, count(*), min(m.valid_at_us)
FROM json_each(:entity_keys) k
CROSS JOIN memory_entities m INDEXED BY memory_entities_by_name
    ON m.namespace = :namespace AND m.group_id = :group_id AND m.entity_key = k.value
CROSS JOIN documents d USING (document_key)
WHERE m.valid_at_us <= :until_us
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
GROUP BY k.key, m.entity_key, m.label ORDER BY k.key, count(*) DESC, m.label;

-- name: facts_of
-- What some episodes state, and what ended it: the first fact of the next run of equal objects in
-- the same slot. Each fact of a slot is looked at once, however many of them are equal.
WITH asked AS MATERIALIZED (
    SELECT i.key AS place, d.document_id, d.created_at_us, e.episode_id, f.*
    FROM json_each(:document_ids) i
    CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = i.value
    CROSS JOIN memory_episodes e USING (document_key)
    CROSS JOIN memory_facts f USING (document_key)
    WHERE f.valid_at_us <= :until_us
      AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
), slots AS MATERIALIZED (
    SELECT group_id, subject, slot, min(valid_at_us) AS since_us
    FROM asked WHERE slot <> '' GROUP BY group_id, subject, slot
), stated AS (
    SELECT n.group_id, n.subject, n.slot, n.object, n.valid_at_us, n.document_key, n.fact_index,
           n.object IS NOT lag(n.object) OVER (
               PARTITION BY n.group_id, n.subject, n.slot
               ORDER BY n.valid_at_us, n.document_key, n.fact_index) AS is_first
    FROM slots s
    CROSS JOIN memory_facts n INDEXED BY memory_facts_by_slot
        ON n.namespace = :namespace AND n.group_id = s.group_id AND n.subject = s.subject
       AND n.slot = s.slot AND n.slot <> ''
       AND n.valid_at_us >= s.since_us AND n.valid_at_us <= :until_us
    CROSS JOIN documents nd USING (document_key)
    WHERE nd.document_id >= :start AND (:end IS NULL OR nd.document_id < :end)
), runs AS MATERIALIZED (
    SELECT group_id, subject, slot, document_key, fact_index, is_first,
           sum(is_first) OVER (
               PARTITION BY group_id, subject, slot
               ORDER BY valid_at_us, document_key, fact_index) AS run
    FROM stated
)
SELECT a.document_id, a.episode_id, a.group_id, a.fact_index, a.subject, a.relation, a.object,
       a.fact, a.valid_at_us, a.slot, a.created_at_us, n.valid_at_us, n.fact, nd.document_id
FROM asked a
LEFT JOIN runs r ON r.document_key = a.document_key AND r.fact_index = a.fact_index
LEFT JOIN runs t ON t.group_id = r.group_id AND t.subject = r.subject AND t.slot = r.slot
                AND t.run = r.run + 1 AND t.is_first
LEFT JOIN memory_facts n ON n.document_key = t.document_key AND n.fact_index = t.fact_index
LEFT JOIN documents nd ON nd.document_key = n.document_key
ORDER BY a.place, a.fact_index;

-- name: stating
-- The last episodes that state something of an entity.
SELECT d.document_id, max(f.valid_at_us)
FROM memory_facts f CROSS JOIN documents d USING (document_key)
WHERE f.namespace = :namespace AND f.group_id = :group_id AND f.subject = :entity_key
  AND f.valid_at_us <= :until_us
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
GROUP BY d.document_key ORDER BY max(f.valid_at_us) DESC, d.document_key DESC LIMIT :limit;
