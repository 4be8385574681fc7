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
-- Some episodes with an id; mostly there is one.
SELECT d.document_id, e.group_id, e.episode_id, e.valid_at_us
FROM memory_episodes e CROSS JOIN documents d USING (document_key)
WHERE e.namespace = :namespace AND e.episode_id = :episode_id
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
ORDER BY e.document_key LIMIT :limit;

-- name: latest
-- The last episodes of a group up to a time.
SELECT d.document_id, e.group_id, e.episode_id, e.valid_at_us
FROM memory_episodes e CROSS JOIN documents d USING (document_key)
WHERE e.namespace = :namespace AND e.group_id = :group_id AND e.valid_at_us <= :until_us
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
ORDER BY e.valid_at_us DESC, e.document_key DESC LIMIT :limit;

-- name: groups
-- The groups with the most episodes, with their number.
SELECT group_id, episodes FROM (
    SELECT e.group_id, count(*) AS episodes
    FROM memory_episodes e CROSS JOIN documents d USING (document_key)
    WHERE e.namespace = :namespace
      AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
    GROUP BY e.group_id)
ORDER BY episodes DESC, group_id LIMIT :limit;

-- name: groups_own
-- The same by the documents under memory/ that a tenant with a folder sees.
SELECT group_id, episodes FROM (
    SELECT e.group_id, count(*) AS episodes
    FROM documents d CROSS JOIN memory_episodes e USING (document_key)
    WHERE d.namespace = :namespace
      AND d.document_id >= :start AND d.document_id < coalesce(:end, x'')
    GROUP BY e.group_id)
ORDER BY episodes DESC, group_id LIMIT :limit;

-- name: totals
-- How many groups there are, and how many episodes in them.
SELECT count(*), coalesce(sum(episodes), 0) FROM (
    SELECT count(*) AS episodes
    FROM memory_episodes e CROSS JOIN documents d USING (document_key)
    WHERE e.namespace = :namespace
      AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
    GROUP BY e.group_id);

-- name: totals_own
-- The same by the documents.
SELECT count(*), coalesce(sum(episodes), 0) FROM (
    SELECT count(*) AS episodes
    FROM documents d CROSS JOIN memory_episodes e USING (document_key)
    WHERE d.namespace = :namespace
      AND d.document_id >= :start AND d.document_id < coalesce(:end, x'')
    GROUP BY e.group_id);

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
-- Entities of a group, over all that mention them: key, and as JSON what each label says of it.
-- Grouped for each by itself: SQLite holds in memory what it groups, and of two hundred entities
-- that each episode mentions it would be two hundred times the group.
SELECT k.value, (
    SELECT json_group_array(json_array(name, label, mentions, since_us))
    FROM (
        SELECT min(m.name) AS name, m.label, count(*) AS mentions, min(m.valid_at_us) AS since_us
        FROM memory_entities m INDEXED BY memory_entities_by_name
        CROSS JOIN documents d ON d.document_key = m.document_key
        WHERE m.namespace = :namespace AND m.group_id = :group_id AND m.entity_key = k.value
          AND m.valid_at_us <= :until_us
          AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
        GROUP BY m.label ORDER BY mentions DESC, m.label))
FROM json_each(:entity_keys) k;

-- name: facts_of
-- What some episodes state.
SELECT d.document_id, e.episode_id, f.group_id, f.fact_index, f.subject, f.relation, f.object,
       f.fact, f.valid_at_us, f.slot, d.created_at_us, f.document_key
FROM json_each(:document_ids) i
CROSS JOIN documents d ON d.namespace = :namespace AND d.document_id = i.value
CROSS JOIN memory_episodes e USING (document_key)
CROSS JOIN memory_facts f USING (document_key)
WHERE f.valid_at_us <= :until_us
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
ORDER BY i.key, f.fact_index;

-- name: next_changes
-- For each of these facts the next one by which its slot got another value, as JSON.
WITH asked AS MATERIALIZED (
    SELECT key AS number, value ->> 0 AS group_id, value ->> 1 AS subject, value ->> 2 AS slot,
           value ->> 3 AS object, value ->> 4 AS valid_at_us, value ->> 5 AS document_key,
           value ->> 6 AS fact_index
    FROM json_each(:asked))
SELECT a.number, (
    SELECT json_array(n.valid_at_us, n.document_key, n.fact_index, n.fact, d.document_id)
    FROM memory_facts n INDEXED BY memory_facts_by_slot
    CROSS JOIN documents d ON d.document_key = n.document_key
    WHERE n.namespace = :namespace AND n.group_id = a.group_id AND n.subject = a.subject
      AND n.slot = a.slot AND n.slot <> '' AND n.object <> a.object
      AND (n.valid_at_us, n.document_key, n.fact_index)
          > (a.valid_at_us, a.document_key, a.fact_index)
      AND n.valid_at_us <= :until_us
      AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
    ORDER BY n.valid_at_us, n.document_key, n.fact_index LIMIT 1)
FROM asked a;

-- name: stating
-- The last episodes that state something of an entity; an episode has so many facts at most.
SELECT document_id, max(valid_at_us)
FROM (
    SELECT d.document_key, d.document_id, f.valid_at_us
    FROM memory_facts f INDEXED BY memory_facts_by_subject
    CROSS JOIN documents d USING (document_key)
    WHERE f.namespace = :namespace AND f.group_id = :group_id AND f.subject = :entity_key
      AND f.valid_at_us <= :until_us
      AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end)
    ORDER BY f.valid_at_us DESC, f.document_key DESC LIMIT :limit * :facts_max)
GROUP BY document_key ORDER BY max(valid_at_us) DESC, document_key DESC LIMIT :limit;
