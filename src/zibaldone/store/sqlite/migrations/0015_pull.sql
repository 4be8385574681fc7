-- What is remembered of the rows that were pulled from a source, to see what changed in it.

-- The last run of a sync. A run may only write while it is the last.
CREATE TABLE pulled_runs (
    source_id   INTEGER PRIMARY KEY,
    namespace   TEXT NOT NULL,
    run         INTEGER NOT NULL,
    is_complete INTEGER NOT NULL CHECK (is_complete IN (0, 1))
) STRICT;

-- Rows in the order of their keys, about a thousand to a block. Where the digest is as it was, none
-- of its rows is looked at.
CREATE TABLE pulled_blocks (
    source_id  INTEGER NOT NULL,
    block      INTEGER NOT NULL,
    namespace  TEXT NOT NULL,
    rows       INTEGER NOT NULL,
    digest     BLOB NOT NULL,
    first_key  TEXT NOT NULL,
    is_settled INTEGER NOT NULL CHECK (is_settled IN (0, 1)),
    PRIMARY KEY (source_id, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE pulled_rows (
    source_id   INTEGER NOT NULL,
    document_id TEXT NOT NULL,
    namespace   TEXT NOT NULL,
    block       INTEGER NOT NULL,
    mark        INTEGER NOT NULL,
    content     BLOB NOT NULL,
    PRIMARY KEY (source_id, document_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX pulled_rows_by_block ON pulled_rows (source_id, block);
