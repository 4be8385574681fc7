-- The keyword index. docs/explain/postgresql.md says why it is ours and how it grows.

-- The terms of each chunk with their places. Phrases are looked for here, and postings are made of
-- it. A term that starts with a space is one of the title.
CREATE TABLE zibaldone.chunk_terms (
    chunk_key bigint PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    length    integer NOT NULL,    -- how many terms there are, as the ranking counts them
    terms     tsvector NOT NULL
) WITH (toast_tuple_target = 4080);

-- Chunks that no posting names yet: a search reads their terms. Writes add rows, folding takes them.
CREATE TABLE zibaldone.unposted (
    namespace text COLLATE "C" NOT NULL,
    chunk_key bigint NOT NULL,
    length    integer NOT NULL,
    PRIMARY KEY (namespace, chunk_key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Terms of chunks that are gone, until folding has taken them out of the statistics.
CREATE TABLE zibaldone.removed_terms (
    chunk_key bigint PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    length    integer NOT NULL,
    terms     tsvector NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX removed_terms_by_namespace ON zibaldone.removed_terms (namespace);

-- Postings are made for many chunks at once, a segment. Segments are merged into larger ones.
CREATE TABLE zibaldone.segments (
    segment    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace  text COLLATE "C" NOT NULL,
    chunks     integer NOT NULL,
    chunk_keys bigint[] NOT NULL   -- some of them may be gone by now
);

CREATE INDEX segments_by_namespace ON zibaldone.segments (namespace, chunks);

-- In which chunks of a segment a term is. An entry has seven bytes: the chunk's key less `base`,
-- its length (two bytes), and how often it has the term (one byte).
CREATE TABLE zibaldone.postings (
    namespace text COLLATE "C" NOT NULL,
    term      text COLLATE "C" NOT NULL,
    segment   bigint NOT NULL,
    base      bigint NOT NULL,
    entries   bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (namespace, term, segment, base)
);

CREATE INDEX postings_by_segment ON zibaldone.postings (segment);

-- How many chunks were removed whose entries may still be there.
CREATE TABLE zibaldone.posting_waste (
    namespace text COLLATE "C" PRIMARY KEY,
    chunks    bigint NOT NULL
);

-- In how many chunks of all namespaces a term is. The empty term: how many chunks there are, and
-- how many terms they have. Chunks that are unposted or removed are not reflected yet.
CREATE TABLE zibaldone.term_statistics (
    term   text COLLATE "C" PRIMARY KEY,
    chunks bigint NOT NULL,
    length bigint NOT NULL
) WITH (fillfactor = 80);

DO $$
DECLARE
    guarded text;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['chunk_terms', 'unposted', 'removed_terms', 'segments',
        'postings', 'posting_waste']
    LOOP
        EXECUTE format('ALTER TABLE zibaldone.%I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE zibaldone.%I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY of_the_namespace ON zibaldone.%I USING ('
            'namespace = (SELECT current_setting(''zibaldone.namespace'', true)) '
            'OR (SELECT zibaldone.is_upkeep()))', guarded);
    END LOOP;
END
$$;

-- What writes of all namespaces have added to the statistics of some terms and is not folded yet:
-- numbers of chunks, and no more than that is seen of other namespaces. Of these a thousand rows are
-- looked at, so that an import into one does not slow down the searches of others.
CREATE FUNCTION zibaldone.unfolded(terms text[], any_term tsquery, own text)
    RETURNS TABLE (term text, chunks bigint, length bigint)
    LANGUAGE plpgsql AS $$
DECLARE
    before text := current_setting('zibaldone.upkeep', true);
BEGIN
    PERFORM set_config('zibaldone.upkeep', 'on', true);
    RETURN QUERY WITH added AS MATERIALIZED (
        SELECT u.chunk_key, u.length FROM zibaldone.unposted u WHERE u.namespace = own
        UNION ALL (SELECT u.chunk_key, u.length FROM zibaldone.unposted u
                   WHERE u.namespace <> own LIMIT 1000)
    ), removed AS MATERIALIZED (
        SELECT r.chunk_key, r.length FROM zibaldone.removed_terms r WHERE r.namespace = own
        UNION ALL (SELECT r.chunk_key, r.length FROM zibaldone.removed_terms r
                   WHERE r.namespace <> own LIMIT 1000)
    )
    SELECT '', count(*), coalesce(sum(a.length), 0)::bigint FROM added a
    UNION ALL
    SELECT '', -count(*), -coalesce(sum(r.length), 0)::bigint FROM removed r
    UNION ALL
    SELECT l.lexeme, count(*), 0::bigint FROM added a JOIN zibaldone.chunk_terms t USING (chunk_key)
    CROSS JOIN unnest(CASE WHEN t.terms @@ any_term THEN t.terms END) l
    WHERE l.lexeme = ANY(unfolded.terms) GROUP BY l.lexeme
    UNION ALL
    SELECT l.lexeme, -count(*), 0::bigint
    FROM removed r JOIN zibaldone.removed_terms t USING (chunk_key)
    CROSS JOIN unnest(CASE WHEN t.terms @@ any_term THEN t.terms END) l
    WHERE l.lexeme = ANY(unfolded.terms)
      AND NOT EXISTS (SELECT 1 FROM zibaldone.unposted u
                      WHERE u.namespace = t.namespace AND u.chunk_key = t.chunk_key)
    GROUP BY l.lexeme;
    PERFORM set_config('zibaldone.upkeep', before, true);
END
$$;

-- Whether a model has vectors, in any namespace: no more than that is seen of the others.
CREATE FUNCTION zibaldone.has_vectors(model bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    before text := current_setting('zibaldone.upkeep', true);
    has_any boolean;
BEGIN
    PERFORM set_config('zibaldone.upkeep', 'on', true);
    has_any := EXISTS (SELECT 1 FROM zibaldone.vectors WHERE model_id = model);
    PERFORM set_config('zibaldone.upkeep', before, true);
    RETURN has_any;
END
$$;
