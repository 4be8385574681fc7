-- Links from documents (0: a path, 1: a name), and the names that documents have (2). Of documents
-- that were there already they are found when they are written again.
CREATE TABLE zibaldone.document_links (
    document_key bigint NOT NULL REFERENCES zibaldone.documents (document_key),
    kind         bigint NOT NULL CHECK (kind BETWEEN 0 AND 2),
    target       text COLLATE "C" NOT NULL,
    namespace    text COLLATE "C" NOT NULL,
    place        bigint NOT NULL,
    PRIMARY KEY (document_key, kind, target)
);

CREATE INDEX document_links_by_target
    ON zibaldone.document_links (namespace, kind, target, document_key);

ALTER TABLE zibaldone.document_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE zibaldone.document_links FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_namespace ON zibaldone.document_links USING (
    namespace = (SELECT current_setting('zibaldone.namespace', true))
    OR (SELECT zibaldone.is_upkeep()));
