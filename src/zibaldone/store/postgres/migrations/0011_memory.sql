-- Episodes: documents under memory/<group>/, by their own time. Live ones only.
CREATE TABLE zibaldone.memory_episodes (
    document_key bigint PRIMARY KEY REFERENCES zibaldone.documents (document_key),
    namespace    text COLLATE "C" NOT NULL,
    group_id     text COLLATE "C" NOT NULL,
    episode_id   text COLLATE "C" NOT NULL,
    valid_at_us  bigint NOT NULL
);

CREATE INDEX memory_episodes_by_time
    ON zibaldone.memory_episodes (namespace, group_id, valid_at_us, document_key);
CREATE INDEX memory_episodes_by_id ON zibaldone.memory_episodes (namespace, episode_id);

-- What they mention.
CREATE TABLE zibaldone.memory_entities (
    document_key bigint NOT NULL REFERENCES zibaldone.documents (document_key),
    entity_key   text COLLATE "C" NOT NULL,
    namespace    text COLLATE "C" NOT NULL,
    group_id     text COLLATE "C" NOT NULL,
    name         text NOT NULL,
    label        text NOT NULL,
    valid_at_us  bigint NOT NULL,
    PRIMARY KEY (document_key, entity_key)
);

CREATE INDEX memory_entities_by_name
    ON zibaldone.memory_entities (namespace, group_id, entity_key, valid_at_us, document_key);

-- What they state.
CREATE TABLE zibaldone.memory_facts (
    document_key bigint NOT NULL REFERENCES zibaldone.documents (document_key),
    fact_index   bigint NOT NULL,
    namespace    text COLLATE "C" NOT NULL,
    group_id     text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    relation     text NOT NULL,
    object       text COLLATE "C" NOT NULL,
    slot         text COLLATE "C" NOT NULL,
    fact         text NOT NULL,
    valid_at_us  bigint NOT NULL,
    PRIMARY KEY (document_key, fact_index)
);

CREATE INDEX memory_facts_by_subject
    ON zibaldone.memory_facts (namespace, group_id, subject, valid_at_us, document_key);
CREATE INDEX memory_facts_by_object
    ON zibaldone.memory_facts (namespace, group_id, object, valid_at_us, document_key);
CREATE INDEX memory_facts_by_slot
    ON zibaldone.memory_facts (namespace, group_id, subject, slot, valid_at_us, document_key)
    WHERE slot <> '';

-- Documents that were there already. What they mention is found when they are written again.
INSERT INTO zibaldone.memory_episodes (document_key, namespace, group_id, episode_id, valid_at_us)
SELECT d.document_key, d.namespace,
       substr(d.document_id, 8, strpos(substr(d.document_id, 8), '/') - 1),
       substr(d.document_id, 8 + strpos(substr(d.document_id, 8), '/')),
       coalesce(f.created_us, d.created_at_us)
FROM zibaldone.documents d LEFT JOIN zibaldone.facets f USING (document_key)
WHERE d.document_id >= 'memory/' AND d.document_id < 'memory0' AND d.deleted_at_us IS NULL
  AND strpos(substr(d.document_id, 8), '/') > 1;

DO $$
DECLARE
    guarded text;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['memory_episodes', 'memory_entities', 'memory_facts']
    LOOP
        EXECUTE format('ALTER TABLE zibaldone.%I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE zibaldone.%I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY of_the_namespace ON zibaldone.%I USING ('
            'namespace = (SELECT current_setting(''zibaldone.namespace'', true)) '
            'OR (SELECT zibaldone.is_upkeep()))', guarded);
    END LOOP;
END
$$;
