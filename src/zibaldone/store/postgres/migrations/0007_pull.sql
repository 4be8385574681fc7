-- What is remembered of the rows that were pulled from a source, to see what changed in it.

-- The last run of a sync. A run may only write while it is the last.
CREATE TABLE zibaldone.pulled_runs (
    source_id   bigint PRIMARY KEY,
    namespace   text COLLATE "C" NOT NULL,
    run         bigint NOT NULL,
    is_complete smallint NOT NULL CHECK (is_complete IN (0, 1))
);

-- Rows in the order of their keys, about a thousand to a block. Where the digest is as it was, none
-- of its rows is looked at.
CREATE TABLE zibaldone.pulled_blocks (
    source_id  bigint NOT NULL,
    block      bigint NOT NULL,
    namespace  text COLLATE "C" NOT NULL,
    rows       bigint NOT NULL,
    digest     bytea NOT NULL,
    first_key  text NOT NULL,
    is_settled smallint NOT NULL CHECK (is_settled IN (0, 1)),
    PRIMARY KEY (source_id, block)
);

CREATE TABLE zibaldone.pulled_rows (
    source_id   bigint NOT NULL,
    document_id text COLLATE "C" NOT NULL,
    namespace   text COLLATE "C" NOT NULL,
    block       bigint NOT NULL,
    mark        bigint NOT NULL,
    content     bytea NOT NULL,
    PRIMARY KEY (source_id, document_id)
);

CREATE INDEX pulled_rows_by_block ON zibaldone.pulled_rows (source_id, block);

DO $$
DECLARE
    guarded text;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['pulled_runs', 'pulled_blocks', 'pulled_rows']
    LOOP
        EXECUTE format('ALTER TABLE zibaldone.%I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE zibaldone.%I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY of_the_namespace ON zibaldone.%I USING ('
            'namespace = (SELECT current_setting(''zibaldone.namespace'', true)) '
            'OR (SELECT zibaldone.is_upkeep()))', guarded);
    END LOOP;
END
$$;
