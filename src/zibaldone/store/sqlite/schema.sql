-- The whole schema, for reading. It is made from migrations/, which are what a database is made of;
-- after a new migration: python -m tests.store.sqlite.schema_snapshot

CREATE TABLE sources (
    source_id       INTEGER PRIMARY KEY,
    namespace       TEXT NOT NULL,
    name            TEXT NOT NULL,
    kind            TEXT NOT NULL,
    enabled         INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    definition      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(definition)),
    created_at_us   INTEGER NOT NULL,
    last_sync_at_us INTEGER, chunking_version INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, name)
) STRICT;

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
, chunking_version INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE UNIQUE INDEX documents_by_id ON documents (namespace, document_id);

CREATE INDEX documents_live ON documents (namespace, document_id) WHERE deleted_at_us IS NULL;

CREATE INDEX documents_unready ON documents (vector_status, updated_at_us)
    WHERE vector_status IN ('pending', 'error') AND deleted_at_us IS NULL;

CREATE TABLE bodies (
    document_key INTEGER PRIMARY KEY REFERENCES documents (document_key),
    body         TEXT NOT NULL
) STRICT;

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

CREATE TABLE api_keys (
    key_id          TEXT PRIMARY KEY,
    secret_hash     BLOB NOT NULL UNIQUE,
    label           TEXT NOT NULL,
    namespace       TEXT NOT NULL,
    path_prefix     TEXT NOT NULL DEFAULT '',
    effects         TEXT NOT NULL CHECK (json_valid(effects)),
    profiles        TEXT CHECK (profiles IS NULL OR json_valid(profiles)),
    created_at_us   INTEGER NOT NULL,
    expires_at_us   INTEGER,
    revoked_at_us   INTEGER
) STRICT;

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

CREATE TABLE vector_changes (
    change_key INTEGER PRIMARY KEY AUTOINCREMENT,
    model_id   INTEGER NOT NULL,
    chunk_key  INTEGER NOT NULL
) STRICT;

CREATE INDEX vectors_by_chunk ON vectors (chunk_key);

CREATE INDEX documents_without_vectors ON documents (namespace, document_id)
    WHERE vector_status IN ('pending', 'error') AND deleted_at_us IS NULL;

CREATE TABLE index_workers (
    worker_key     INTEGER PRIMARY KEY,
    model_id       INTEGER NOT NULL REFERENCES models (model_id),
    alive_until_us INTEGER NOT NULL
) STRICT;

CREATE VIRTUAL TABLE chunk_terms USING fts5(
    title, heading, body,
    content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cn Cf'"
);

CREATE TABLE jobs (
    job_key          INTEGER PRIMARY KEY,
    job_id           TEXT NOT NULL,
    kind             TEXT NOT NULL,
    state            INTEGER NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 4),
    namespace        TEXT NOT NULL,
    prefix           TEXT NOT NULL,
    subject          TEXT,
    created_at_us    INTEGER NOT NULL,
    not_before_us    INTEGER NOT NULL,
    unique_key       TEXT,
    payload          TEXT,
    attempts         INTEGER NOT NULL DEFAULT 0,
    crashes          INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    leased_until_us  INTEGER,
    lease_owner      TEXT,
    started_at_us    INTEGER,
    finished_at_us   INTEGER,
    progress_done    REAL,
    progress_total   REAL,
    progress_message TEXT,
    result           TEXT,
    error            TEXT, key_id TEXT,
    UNIQUE (namespace, job_id)
) STRICT;

CREATE INDEX jobs_queued ON jobs (kind, job_key, not_before_us) WHERE state = 0;

CREATE INDEX jobs_running ON jobs (kind, leased_until_us) WHERE state = 1;

CREATE INDEX jobs_ended ON jobs (state, kind, finished_at_us) WHERE state >= 2;

CREATE INDEX jobs_ended_ids ON jobs (namespace, state, job_id) WHERE state >= 2;

CREATE UNIQUE INDEX jobs_unique ON jobs (namespace, kind, unique_key)
    WHERE unique_key IS NOT NULL AND state <= 1;

CREATE TABLE schedules (
    name           TEXT PRIMARY KEY,
    cron           TEXT NOT NULL,
    kind           TEXT NOT NULL,
    namespace      TEXT NOT NULL,
    payload        TEXT NOT NULL CHECK (json_valid(payload)),
    next_run_at_us INTEGER NOT NULL,
    last_run_at_us INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_by_subject ON jobs (kind, subject, namespace) WHERE subject IS NOT NULL;

CREATE TABLE usage (
    namespace TEXT PRIMARY KEY,
    documents INTEGER NOT NULL,   -- live ones
    revisions INTEGER NOT NULL,   -- all that are kept, the current ones and those of deleted documents too
    bytes     INTEGER NOT NULL    -- of all these revisions, as stored: text, title, tags and metadata
) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_queued_apart ON jobs (kind, namespace, job_key, not_before_us) WHERE state = 0;

CREATE TABLE pulled_runs (
    source_id   INTEGER PRIMARY KEY,
    namespace   TEXT NOT NULL,
    run         INTEGER NOT NULL,
    is_complete INTEGER NOT NULL CHECK (is_complete IN (0, 1))
) STRICT;

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

CREATE TABLE vector_mirrors (
    name            TEXT PRIMARY KEY,
    applied_seq     INTEGER NOT NULL DEFAULT 0,
    begun_at_us     INTEGER NOT NULL,
    leased_until_us INTEGER NOT NULL DEFAULT 0,
    lease_owner     TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE vector_mirror_changes (
    name         TEXT NOT NULL,
    document_key INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    PRIMARY KEY (name, document_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX vector_mirror_changes_by_seq ON vector_mirror_changes (name, seq);

CREATE VIEW vector_mirror_next AS
SELECT m.name, 1 + max(m.applied_seq, coalesce(
    (SELECT max(c.seq) FROM vector_mirror_changes c WHERE c.name = m.name), 0)) AS seq
FROM vector_mirrors m;

CREATE TRIGGER vectors_added AFTER INSERT ON vectors BEGIN
    INSERT INTO vector_mirror_changes (name, document_key, seq)
    SELECT n.name, c.document_key, n.seq FROM vector_mirror_next n
    CROSS JOIN chunks c ON c.chunk_key = NEW.chunk_key WHERE true
    ON CONFLICT (name, document_key) DO UPDATE SET seq = excluded.seq;
END;

CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN
    INSERT INTO vector_mirror_changes (name, document_key, seq)
    SELECT n.name, OLD.document_key, n.seq FROM vector_mirror_next n WHERE true
    ON CONFLICT (name, document_key) DO UPDATE SET seq = excluded.seq;
END;

CREATE TRIGGER documents_revised AFTER UPDATE OF revision ON documents BEGIN
    INSERT INTO vector_mirror_changes (name, document_key, seq)
    SELECT n.name, NEW.document_key, n.seq FROM vector_mirror_next n WHERE true
    ON CONFLICT (name, document_key) DO UPDATE SET seq = excluded.seq;
END;

CREATE INDEX jobs_open_of_keys ON jobs (namespace, key_id) WHERE key_id IS NOT NULL AND state <= 1;

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

CREATE TABLE consult_messages (
    session_key INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    message     BLOB NOT NULL,
    PRIMARY KEY (session_key, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE stable_inline_lists (
    session_key  INTEGER PRIMARY KEY,
    inline_paths BLOB NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE sent_files (
    session_key INTEGER NOT NULL,
    file_path   TEXT NOT NULL,       -- number of its folder in sent_folders, slash, name
    last_size   INTEGER NOT NULL,
    last_mtime  INTEGER NOT NULL,    -- nanoseconds
    digest      TEXT,
    PRIMARY KEY (session_key, file_path)
) STRICT, WITHOUT ROWID;

CREATE TABLE consult_spending (
    namespace TEXT NOT NULL,
    owner     TEXT NOT NULL,
    day       INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    cost      REAL NOT NULL,
    PRIMARY KEY (namespace, owner, day)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE document_links (
    document_key INTEGER NOT NULL REFERENCES documents (document_key),
    kind         INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
    target       TEXT NOT NULL,
    namespace    TEXT NOT NULL,
    place        INTEGER NOT NULL,
    PRIMARY KEY (document_key, kind, target)
) STRICT, WITHOUT ROWID;

CREATE INDEX document_links_by_target ON document_links (namespace, kind, target, document_key);

CREATE INDEX documents_recent ON documents (namespace, updated_at_us, document_id)
    WHERE deleted_at_us IS NULL;

CREATE TABLE term_scheme (
    version INTEGER NOT NULL,
    through INTEGER,
    last    INTEGER NOT NULL
) STRICT;

CREATE TABLE unsettled_terms (chunk_key INTEGER PRIMARY KEY) STRICT;
