-- What searches are restricted by, apart from the path: one row a live document.
CREATE TABLE facets (
    document_key INTEGER PRIMARY KEY REFERENCES documents (document_key),
    created_us   INTEGER NOT NULL,
    score        REAL,
    post_type    INTEGER
) STRICT;

CREATE TABLE document_tags (
    tag          TEXT NOT NULL,
    document_key INTEGER NOT NULL REFERENCES documents (document_key),
    PRIMARY KEY (tag, document_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX document_tags_by_document ON document_tags (document_key);

-- Documents that are here already. (`lower` folds ASCII only; the next write of a document folds all.)
INSERT INTO facets (document_key, created_us, score, post_type)
SELECT document_key, created_at_us,
       CASE WHEN json_type(metadata, '$.Score') IN ('integer', 'real') THEN metadata ->> '$.Score' END,
       CASE WHEN json_type(metadata, '$.PostTypeId') = 'integer' THEN metadata ->> '$.PostTypeId' END
FROM documents WHERE deleted_at_us IS NULL;

INSERT OR IGNORE INTO document_tags (tag, document_key)
SELECT lower(trim(t.value)), d.document_key FROM documents d, json_each(d.tags) t
WHERE d.deleted_at_us IS NULL AND t.type = 'text';

-- What changed among the vectors, in order: processes that hold them in memory follow it.
CREATE TABLE vector_changes (
    change_key INTEGER PRIMARY KEY AUTOINCREMENT,
    model_id   INTEGER NOT NULL,
    chunk_key  INTEGER NOT NULL
) STRICT;

CREATE INDEX vectors_by_chunk ON vectors (chunk_key);

-- What is counted for each search, to say how much it can find by keyword only.
CREATE INDEX documents_pending ON documents (namespace, document_id)
    WHERE vector_status = 'pending' AND deleted_at_us IS NULL;
