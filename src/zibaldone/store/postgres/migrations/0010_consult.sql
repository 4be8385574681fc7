-- Conversations with assistants. Each belongs to one key of a namespace.

CREATE TABLE zibaldone.consult_sessions (
    session_key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace          text COLLATE "C" NOT NULL,
    owner              text COLLATE "C" NOT NULL,    -- id of the key
    assistant          text COLLATE "C" NOT NULL,
    session_id         text COLLATE "C" NOT NULL,
    turns              bigint NOT NULL DEFAULT 0,
    tokens             bigint NOT NULL DEFAULT 0,    -- of the conversation, as the assistant has it
    input_tokens       bigint NOT NULL DEFAULT 0,
    cached_tokens      bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    saved_tokens       bigint NOT NULL DEFAULT 0,
    cost               double precision NOT NULL DEFAULT 0,
    state              text NOT NULL DEFAULT '{}',
    sent_folders       bytea,                        -- of the files in sent_files: JSON, compressed
    created_at_us      bigint NOT NULL,
    updated_at_us      bigint NOT NULL,
    lease_owner        text COLLATE "C",             -- of the turn that runs
    leased_until_us    bigint NOT NULL DEFAULT 0,
    UNIQUE (namespace, owner, assistant, session_id)
);

CREATE INDEX consult_sessions_by_time
    ON zibaldone.consult_sessions (namespace, owner, updated_at_us, session_key);

-- What was said, compressed, in the order in which it is sent again.
CREATE TABLE zibaldone.consult_messages (
    session_key bigint NOT NULL,
    position    bigint NOT NULL,
    message     bytea NOT NULL,
    PRIMARY KEY (session_key, position)
);

-- The files that are in the prompt for as long as the session lasts: a JSON array, compressed.
CREATE TABLE zibaldone.stable_inline_lists (
    session_key  bigint PRIMARY KEY,
    inline_paths bytea NOT NULL,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL
);

-- Files that the assistant has, to see which of them changed since.
CREATE TABLE zibaldone.sent_files (
    session_key bigint NOT NULL,
    file_path   text COLLATE "C" NOT NULL,    -- number of its folder in sent_folders, slash, name
    last_size   bigint NOT NULL,
    last_mtime  bigint NOT NULL,    -- nanoseconds
    digest      text COLLATE "C",
    PRIMARY KEY (session_key, file_path)
);

-- What a key spent on assistants, by day (of UTC, counted from 1970).
CREATE TABLE zibaldone.consult_spending (
    namespace text COLLATE "C" NOT NULL,
    owner     text COLLATE "C" NOT NULL,
    day       bigint NOT NULL,
    tokens    bigint NOT NULL,
    cost      double precision NOT NULL,
    PRIMARY KEY (namespace, owner, day)
);

DO $$
DECLARE
    guarded text;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['consult_sessions', 'consult_spending']
    LOOP
        EXECUTE format('ALTER TABLE zibaldone.%I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE zibaldone.%I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY of_the_namespace ON zibaldone.%I USING ('
            'namespace = (SELECT current_setting(''zibaldone.namespace'', true)) '
            'OR (SELECT zibaldone.is_upkeep()))', guarded);
    END LOOP;
    -- These say no namespace, to be small: they are seen where their session is.
    FOREACH guarded IN ARRAY ARRAY['consult_messages', 'stable_inline_lists', 'sent_files']
    LOOP
        EXECUTE format('ALTER TABLE zibaldone.%I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE zibaldone.%I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY of_the_session ON zibaldone.%I USING ('
            '(SELECT zibaldone.is_upkeep()) OR EXISTS ('
            'SELECT 1 FROM zibaldone.consult_sessions s WHERE s.session_key = %I.session_key))',
            guarded, guarded);
    END LOOP;
END
$$;
