-- Links from documents (0: a path, 1: a name), and the names that documents have (2). Of documents
-- that were there already they are found when they are written again.
CREATE TABLE document_links (
    document_key INTEGER NOT NULL REFERENCES documents (document_key),
    kind         INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
    target       TEXT NOT NULL,
    namespace    TEXT NOT NULL,
    place        INTEGER NOT NULL,
    PRIMARY KEY (document_key, kind, target)
) STRICT, WITHOUT ROWID;

CREATE INDEX document_links_by_target ON document_links (namespace, kind, target, document_key);
