-- Sources: where documents come from. Source 1 is the knowledge base itself, in every namespace.
CREATE TABLE sources (
    source_id       INTEGER PRIMARY KEY,
    namespace       TEXT NOT NULL,
    name            TEXT NOT NULL,
    kind            TEXT NOT NULL,
    enabled         INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    definition      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(definition)),
    created_at_us   INTEGER NOT NULL,
    last_sync_at_us INTEGER,
    UNIQUE (namespace, name)
) STRICT;

INSERT INTO sources (source_id, namespace, name, kind, created_at_us) VALUES (1, '*', 'kb', 'builtin', 0);

-- Documents without their bodies: lists and status updates touch small rows only.
CREATE TABLE documents (
    document_key  INTEGER PRIMARY KEY,
    namespace     TEXT NOT NULL,
    document_id   TEXT NOT NULL CHECK (length(document_id) > 0),
    source_id     INTEGER NOT NULL REFERENCES sources (source_id),
    parent_id     TEXT,
    title         TEXT NOT NULL,
    tags          TEXT NOT NULL CHECK (json_valid(tags)),
    mime          TEXT NOT NULL,
    metadata      TEXT NOT NULL CHECK (json_valid(metadata)),
    pk            TEXT CHECK (pk IS NULL OR json_valid(pk)),
    revision      INTEGER NOT NULL CHECK (revision >= 0),
    content_hash  BLOB NOT NULL,
    content_chars INTEGER NOT NULL,
    created_at_us INTEGER NOT NULL,
    updated_at_us INTEGER NOT NULL,
    deleted_at_us INTEGER,
    updated_by    TEXT NOT NULL,
    operation     TEXT NOT NULL,
    vector_status TEXT NOT NULL CHECK (vector_status IN ('pending', 'ready', 'error', 'skipped')),
    vector_error  TEXT
) STRICT;

CREATE UNIQUE INDEX documents_by_id ON documents (namespace, document_id);

-- What a list walks: live ids in byte order, nothing else.
CREATE INDEX documents_live ON documents (namespace, document_id) WHERE deleted_at_us IS NULL;

-- What the lag metric and the recovery sweep walk.
CREATE INDEX documents_unready ON documents (vector_status, updated_at_us)
    WHERE vector_status IN ('pending', 'error') AND deleted_at_us IS NULL;

CREATE TABLE bodies (
    document_key INTEGER PRIMARY KEY REFERENCES documents (document_key),
    body         TEXT NOT NULL
) STRICT;

-- Every state that was replaced; the current one is in documents. `body` is compressed text.
CREATE TABLE revisions (
    document_key  INTEGER NOT NULL REFERENCES documents (document_key),
    revision      INTEGER NOT NULL,
    title         TEXT NOT NULL,
    tags          TEXT NOT NULL,
    mime          TEXT NOT NULL,
    metadata      TEXT NOT NULL,
    content_chars INTEGER NOT NULL,
    written_at_us INTEGER NOT NULL,
    written_by    TEXT NOT NULL,
    operation     TEXT NOT NULL,
    body          BLOB NOT NULL,
    PRIMARY KEY (document_key, revision)
) STRICT;

-- Who did what to which document. Rows are only ever added.
CREATE TABLE audit (
    audit_key   INTEGER PRIMARY KEY AUTOINCREMENT,
    at_us       INTEGER NOT NULL,
    namespace   TEXT NOT NULL,
    principal   TEXT NOT NULL,
    action      TEXT NOT NULL,
    document_id TEXT NOT NULL,
    revision    INTEGER,
    outcome     TEXT NOT NULL,
    request_id  TEXT NOT NULL
) STRICT;

CREATE INDEX audit_by_document ON audit (namespace, document_id, audit_key);
