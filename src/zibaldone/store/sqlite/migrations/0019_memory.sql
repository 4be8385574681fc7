-- Episodes: documents under memory/<group>/, by their own time. Live ones only.
CREATE TABLE memory_episodes (
    document_key INTEGER PRIMARY KEY REFERENCES documents (document_key),
    namespace    TEXT NOT NULL,
    group_id     TEXT NOT NULL,
    episode_id   TEXT NOT NULL,
    valid_at_us  INTEGER NOT NULL
) STRICT;

CREATE INDEX memory_episodes_by_time
    ON memory_episodes (namespace, group_id, valid_at_us, document_key);
CREATE INDEX memory_episodes_by_id ON memory_episodes (namespace, episode_id);

-- What they mention.
CREATE TABLE memory_entities (
    document_key INTEGER NOT NULL REFERENCES documents (document_key),
    entity_key   TEXT NOT NULL,
    namespace    TEXT NOT NULL,
    group_id     TEXT NOT NULL,
    name         TEXT NOT NULL,
    label        TEXT NOT NULL,
    valid_at_us  INTEGER NOT NULL,
    PRIMARY KEY (document_key, entity_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_entities_by_name
    ON memory_entities (namespace, group_id, entity_key, valid_at_us, document_key);

-- What they state.
CREATE TABLE memory_facts (
    document_key INTEGER NOT NULL REFERENCES documents (document_key),
    fact_index   INTEGER NOT NULL,
    namespace    TEXT NOT NULL,
    group_id     TEXT NOT NULL,
    subject      TEXT NOT NULL,
    relation     TEXT NOT NULL,
    object       TEXT NOT NULL,
    slot         TEXT NOT NULL,
    fact         TEXT NOT NULL,
    valid_at_us  INTEGER NOT NULL,
    PRIMARY KEY (document_key, fact_index)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_facts_by_subject
    ON memory_facts (namespace, group_id, subject, valid_at_us, document_key);
CREATE INDEX memory_facts_by_object
    ON memory_facts (namespace, group_id, object, valid_at_us, document_key);
CREATE INDEX memory_facts_by_slot
    ON memory_facts (namespace, group_id, subject, slot, valid_at_us, document_key)
    WHERE slot <> '';

-- Documents that were there already. What they mention is found when they are written again.
INSERT INTO memory_episodes (document_key, namespace, group_id, episode_id, valid_at_us)
SELECT d.document_key, d.namespace,
       substr(d.document_id, 8, instr(substr(d.document_id, 8), '/') - 1),
       substr(d.document_id, 8 + instr(substr(d.document_id, 8), '/')),
       coalesce(f.created_us, d.created_at_us)
FROM documents d LEFT JOIN facets f USING (document_key)
WHERE d.document_id >= 'memory/' AND d.document_id < 'memory0' AND d.deleted_at_us IS NULL
  AND instr(substr(d.document_id, 8), '/') > 1;
