-- Conversations with assistants. Each belongs to one key of a namespace.
CREATE TABLE consult_sessions (
    session_key     INTEGER PRIMARY KEY,
    namespace       TEXT NOT NULL,
    owner           TEXT NOT NULL,    -- id of the key
    assistant       TEXT NOT NULL,
    session_id      TEXT NOT NULL,
    turns           INTEGER NOT NULL DEFAULT 0,
    tokens          INTEGER NOT NULL DEFAULT 0,    -- of the conversation, as the assistant has it
    input_tokens    INTEGER NOT NULL DEFAULT 0,
    cached_tokens   INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens   INTEGER NOT NULL DEFAULT 0,
    saved_tokens    INTEGER NOT NULL DEFAULT 0,
    cost            REAL NOT NULL DEFAULT 0,
    state           TEXT NOT NULL DEFAULT '{}',
    sent_folders    BLOB,             -- of the files in sent_files: a JSON array, compressed
    created_at_us   INTEGER NOT NULL,
    updated_at_us   INTEGER NOT NULL,
    lease_owner     TEXT,             -- of the turn that runs
    leased_until_us INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, owner, assistant, session_id)
) STRICT;

CREATE INDEX consult_sessions_by_time
    ON consult_sessions (namespace, owner, updated_at_us, session_key);

-- What was said, compressed, in the order in which it is sent again.
CREATE TABLE consult_messages (
    session_key INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    message     BLOB NOT NULL,
    PRIMARY KEY (session_key, position)
) STRICT, WITHOUT ROWID;

-- The files that are in the prompt for as long as the session lasts: a JSON array, compressed.
CREATE TABLE stable_inline_lists (
    session_key  INTEGER PRIMARY KEY,
    inline_paths BLOB NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;

-- Files that the assistant has, to see which of them changed since.
CREATE TABLE sent_files (
    session_key INTEGER NOT NULL,
    file_path   TEXT NOT NULL,       -- number of its folder in sent_folders, slash, name
    last_size   INTEGER NOT NULL,
    last_mtime  INTEGER NOT NULL,    -- nanoseconds
    digest      TEXT,
    PRIMARY KEY (session_key, file_path)
) STRICT, WITHOUT ROWID;

-- What a key spent on assistants, by day (of UTC, counted from 1970).
CREATE TABLE consult_spending (
    namespace TEXT NOT NULL,
    owner     TEXT NOT NULL,
    day       INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    cost      REAL NOT NULL,
    PRIMARY KEY (namespace, owner, day)
) STRICT, WITHOUT ROWID;
