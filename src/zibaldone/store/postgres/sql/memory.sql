-- name: forget_episode
-- Before it is stored anew, or because its document was deleted.
DELETE FROM zibaldone.memory_episodes WHERE document_key = %(document_key)s AND namespace = %(namespace)s;

-- name: forget_entities
-- The same for what it mentions.
DELETE FROM zibaldone.memory_entities WHERE document_key = %(document_key)s AND namespace = %(namespace)s;

-- name: forget_facts
-- The same for what it states.
DELETE FROM zibaldone.memory_facts WHERE document_key = %(document_key)s AND namespace = %(namespace)s;

-- name: put_episode
-- An episode; its document is of the namespace.
INSERT INTO zibaldone.memory_episodes (document_key, namespace, group_id, episode_id, valid_at_us)
VALUES (%(document_key)s, %(namespace)s, %(group_id)s, %(episode_id)s, %(valid_at_us)s);

-- name: put_entities
-- What an episode mentions.
INSERT INTO zibaldone.memory_entities
    (document_key, entity_key, namespace, group_id, name, label, valid_at_us)
SELECT %(document_key)s, e.entity_key, %(namespace)s, %(group_id)s, e.name, e.label,
       %(valid_at_us)s
FROM unnest(%(entity_keys)s::text[], %(names)s::text[], %(labels)s::text[]) e (entity_key, name, label);

-- name: put_facts
-- What an episode states.
INSERT INTO zibaldone.memory_facts (document_key, fact_index, namespace, group_id, subject, relation, object,
    slot, fact, valid_at_us)
SELECT %(document_key)s, e.number - 1, %(namespace)s, %(group_id)s, e.subject, e.relation, e.object, e.slot,
       e.fact, e.valid_at_us
FROM unnest(%(subjects)s::text[], %(relations)s::text[], %(objects)s::text[], %(slots)s::text[], %(facts)s::text[],
    %(valid_at_us)s::bigint[]) WITH ORDINALITY
    e (subject, relation, object, slot, fact, valid_at_us, number);

-- name: find
-- Some episodes with an id; mostly there is one.
SELECT d.document_id, e.group_id, e.episode_id, e.valid_at_us
FROM zibaldone.memory_episodes e JOIN zibaldone.documents d USING (document_key)
WHERE e.namespace = %(namespace)s AND e.episode_id = %(episode_id)s
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
ORDER BY e.document_key LIMIT %(limit)s;

-- name: latest
-- The last episodes of a group up to a time.
SELECT d.document_id, e.group_id, e.episode_id, e.valid_at_us
FROM zibaldone.memory_episodes e JOIN zibaldone.documents d USING (document_key)
WHERE e.namespace = %(namespace)s AND e.group_id = %(group_id)s AND e.valid_at_us <= %(until_us)s
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
ORDER BY e.valid_at_us DESC, e.document_key DESC LIMIT %(limit)s;

-- name: groups
-- The groups with the most episodes, with their number.
SELECT group_id, episodes FROM (
    SELECT e.group_id, count(*) AS episodes
    FROM zibaldone.memory_episodes e JOIN zibaldone.documents d USING (document_key)
    WHERE e.namespace = %(namespace)s
      AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
    GROUP BY e.group_id) counted
ORDER BY episodes DESC, group_id LIMIT %(limit)s::bigint;

-- name: totals
-- How many groups there are, and how many episodes in them.
SELECT count(*), coalesce(sum(episodes), 0)::bigint FROM (
    SELECT count(*) AS episodes
    FROM zibaldone.memory_episodes e JOIN zibaldone.documents d USING (document_key)
    WHERE e.namespace = %(namespace)s
      AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
    GROUP BY e.group_id) counted;

-- name: around
-- What stands beside some episodes, two steps each way.
SELECT d.document_id, e.group_id, e.episode_id, e.valid_at_us,
    (SELECT document_key FROM zibaldone.memory_episodes b
     WHERE b.namespace = e.namespace AND b.group_id = e.group_id
       AND (b.valid_at_us, b.document_key) < (e.valid_at_us, e.document_key)
     ORDER BY b.valid_at_us DESC, b.document_key DESC LIMIT 1),
    (SELECT document_key FROM zibaldone.memory_episodes b
     WHERE b.namespace = e.namespace AND b.group_id = e.group_id
       AND (b.valid_at_us, b.document_key) < (e.valid_at_us, e.document_key)
     ORDER BY b.valid_at_us DESC, b.document_key DESC LIMIT 1 OFFSET 1),
    (SELECT document_key FROM zibaldone.memory_episodes b
     WHERE b.namespace = e.namespace AND b.group_id = e.group_id
       AND (b.valid_at_us, b.document_key) > (e.valid_at_us, e.document_key)
     ORDER BY b.valid_at_us, b.document_key LIMIT 1),
    (SELECT document_key FROM zibaldone.memory_episodes b
     WHERE b.namespace = e.namespace AND b.group_id = e.group_id
       AND (b.valid_at_us, b.document_key) > (e.valid_at_us, e.document_key)
     ORDER BY b.valid_at_us, b.document_key LIMIT 1 OFFSET 1)
FROM unnest(%(document_ids)s::text[]) WITH ORDINALITY i (value, key)
JOIN zibaldone.documents d ON d.namespace = %(namespace)s AND d.document_id = i.value
JOIN zibaldone.memory_episodes e USING (document_key)
WHERE d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s);

-- name: ids
-- Documents by their keys.
SELECT d.document_key, d.document_id
FROM zibaldone.documents d WHERE d.document_key = ANY(%(document_keys)s::bigint[])
  AND d.namespace = %(namespace)s
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s);

-- name: entities_of
-- What some episodes mention.
SELECT d.document_id, e.entity_key, e.name, e.label
FROM unnest(%(document_ids)s::text[]) WITH ORDINALITY i (value, key)
JOIN zibaldone.documents d ON d.namespace = %(namespace)s AND d.document_id = i.value
JOIN zibaldone.memory_entities e USING (document_key)
WHERE d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
ORDER BY i.key, e.entity_key;

-- name: nodes
-- Entities of a group, over all that mention them.
SELECT m.entity_key, min(m.name), m.label, count(*), min(m.valid_at_us)
FROM unnest(%(entity_keys)s::text[]) WITH ORDINALITY k (value, key)
JOIN zibaldone.memory_entities m
    ON m.namespace = %(namespace)s AND m.group_id = %(group_id)s AND m.entity_key = k.value
JOIN zibaldone.documents d USING (document_key)
WHERE m.valid_at_us <= %(until_us)s
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
GROUP BY k.key, m.entity_key, m.label ORDER BY k.key, count(*) DESC, m.label;

-- name: facts_of
-- What some episodes state.
SELECT d.document_id, e.episode_id, f.group_id, f.fact_index, f.subject, f.relation, f.object,
       f.fact, f.valid_at_us, f.slot, d.created_at_us, f.document_key
FROM unnest(%(document_ids)s::text[]) WITH ORDINALITY i (value, key)
JOIN zibaldone.documents d ON d.namespace = %(namespace)s AND d.document_id = i.value
JOIN zibaldone.memory_episodes e USING (document_key)
JOIN zibaldone.memory_facts f USING (document_key)
WHERE f.valid_at_us <= %(until_us)s
  AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
ORDER BY i.key, f.fact_index;

-- name: next_changes
-- For each of these facts the next one by which its slot got another value.
SELECT a.number - 1, n.*
FROM unnest(%(groups)s::text[], %(subjects)s::text[], %(slots)s::text[], %(objects)s::text[],
        %(times_us)s::bigint[], %(document_keys)s::bigint[], %(indexes)s::bigint[])
    WITH ORDINALITY
    a (group_id, subject, slot, object, valid_at_us, document_key, fact_index, number)
CROSS JOIN LATERAL (
    SELECT n.valid_at_us, n.document_key, n.fact_index, n.fact, d.document_id
    FROM zibaldone.memory_facts n JOIN zibaldone.documents d USING (document_key)
    WHERE n.namespace = %(namespace)s AND n.group_id = a.group_id AND n.subject = a.subject
      AND n.slot = a.slot AND n.slot <> '' AND n.object <> a.object
      AND (n.valid_at_us, n.document_key, n.fact_index)
          > (a.valid_at_us, a.document_key, a.fact_index)
      AND n.valid_at_us <= %(until_us)s
      AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
    ORDER BY n.valid_at_us, n.document_key, n.fact_index LIMIT 1) n;

-- name: stating
-- The last episodes that state something of an entity; an episode has so many facts at most.
SELECT document_id, max(valid_at_us)
FROM (
    SELECT f.document_key, d.document_id, f.valid_at_us
    FROM zibaldone.memory_facts f JOIN zibaldone.documents d USING (document_key)
    WHERE f.namespace = %(namespace)s AND f.group_id = %(group_id)s AND f.subject = %(entity_key)s
      AND f.valid_at_us <= %(until_us)s
      AND d.document_id >= %(start)s AND (%(end)s::text IS NULL OR d.document_id < %(end)s)
    ORDER BY f.valid_at_us DESC, f.document_key DESC
    LIMIT %(limit)s::bigint * %(facts_max)s::bigint) stated
GROUP BY document_key, document_id
ORDER BY max(valid_at_us) DESC, document_key DESC LIMIT %(limit)s;
