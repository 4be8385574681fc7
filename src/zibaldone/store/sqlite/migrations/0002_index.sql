-- Chunks. A chunk that a revision leaves as it was keeps its key, and so its vector.
CREATE TABLE chunks (
    chunk_key    INTEGER PRIMARY KEY AUTOINCREMENT,
    document_key INTEGER NOT NULL REFERENCES documents (document_key),
    chunk_index  INTEGER NOT NULL,
    start_char   INTEGER NOT NULL,
    end_char     INTEGER NOT NULL,
    heading      TEXT NOT NULL,
    body         TEXT NOT NULL,
    content_hash BLOB NOT NULL
) STRICT;

CREATE INDEX chunks_by_document ON chunks (document_key, chunk_index);

-- The lexical index, fed with terms that text/terms.py makes; rowid = chunk_key.
CREATE VIRTUAL TABLE chunk_terms USING fts5(
    title, heading, body,
    content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cn Cf'"
);

-- Embedding models, told apart by everything that changes a vector.
CREATE TABLE models (
    model_id      INTEGER PRIMARY KEY,
    identity      TEXT NOT NULL UNIQUE,
    dimensions    INTEGER NOT NULL,
    created_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE vectors (
    model_id  INTEGER NOT NULL REFERENCES models (model_id),
    chunk_key INTEGER NOT NULL,
    vector    BLOB NOT NULL,
    PRIMARY KEY (model_id, chunk_key)
) STRICT, WITHOUT ROWID;

-- One row for each change, written with it; workers lease rows and delete them when done.
CREATE TABLE outbox (
    outbox_key      INTEGER PRIMARY KEY AUTOINCREMENT,
    document_key    INTEGER NOT NULL,
    revision        INTEGER NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('index', 'remove')),
    at_us           INTEGER NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    not_before_us   INTEGER NOT NULL DEFAULT 0,
    leased_until_us INTEGER NOT NULL DEFAULT 0,
    parked          INTEGER NOT NULL DEFAULT 0 CHECK (parked IN (0, 1)),
    error           TEXT
) STRICT;

CREATE INDEX outbox_by_document ON outbox (document_key);
CREATE INDEX outbox_due ON outbox (not_before_us, outbox_key) WHERE parked = 0;
