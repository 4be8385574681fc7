-- By which scheme the terms of chunks are made (`index.renewal`): `version`, for chunks up to the
-- key `through`, of those that were there when it began (`last`). NULL: for all.
CREATE TABLE term_scheme (
    version INTEGER NOT NULL,
    through INTEGER,
    last    INTEGER NOT NULL
) STRICT;

-- Where there are no chunks yet, nothing has to be made anew.
INSERT INTO term_scheme (version, through, last)
SELECT CASE WHEN EXISTS (SELECT 1 FROM chunks) THEN 0 ELSE 1 END, NULL, 0;
