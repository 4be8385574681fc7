-- By which scheme the terms of chunks are made (`index.renewal`): `version`, for chunks up to the
-- key `through`, of those that were there when it began (`last`). NULL: for all.
CREATE TABLE zibaldone.term_scheme (
    version bigint NOT NULL,
    through bigint,
    last    bigint NOT NULL
);

-- Where there are no chunks yet, nothing has to be made anew.
INSERT INTO zibaldone.term_scheme (version, through, last)
SELECT CASE WHEN EXISTS (SELECT 1 FROM zibaldone.chunks) THEN 0 ELSE 1 END, NULL, 0;

-- Terms that take the place of those of a chunk, when the postings of its segment are made anew.
CREATE TABLE zibaldone.new_terms (
    chunk_key bigint PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    length    integer NOT NULL,
    terms     tsvector NOT NULL
);

ALTER TABLE zibaldone.new_terms ENABLE ROW LEVEL SECURITY;
ALTER TABLE zibaldone.new_terms FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_namespace ON zibaldone.new_terms USING (
    namespace = (SELECT current_setting('zibaldone.namespace', true))
    OR (SELECT zibaldone.is_upkeep()));
