-- By which scheme the terms of chunks are made (`index.renewal`): `version`, for chunks up to the
-- key `through`, of those that were there when it began (`last`). NULL: for all.
CREATE TABLE term_scheme (
    version INTEGER NOT NULL,
    through INTEGER,
    last    INTEGER NOT NULL
) STRICT;

INSERT INTO term_scheme (version, through, last) VALUES (0, NULL, 0);
