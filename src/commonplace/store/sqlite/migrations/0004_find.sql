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

-- What changed among the vectors, in order: processes that hold them in memory follow it.
CREATE TABLE vector_changes (
    change_key INTEGER PRIMARY KEY AUTOINCREMENT,
    model_id   INTEGER NOT NULL,
    chunk_key  INTEGER NOT NULL
) STRICT;

CREATE INDEX vectors_by_chunk ON vectors (chunk_key);
