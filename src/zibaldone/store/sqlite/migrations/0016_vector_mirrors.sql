-- Indexes of vectors outside of the file (Qdrant). A document whose vectors or facets changed is
-- noted for each of them in the same transaction, until it was taken over there.
CREATE TABLE vector_mirrors (
    name            TEXT PRIMARY KEY,
    applied_seq     INTEGER NOT NULL DEFAULT 0,
    begun_at_us     INTEGER NOT NULL,
    leased_until_us INTEGER NOT NULL DEFAULT 0,
    lease_owner     TEXT
) STRICT, WITHOUT ROWID;

-- One row for a document, however often it changed; each change gives it a new number.
CREATE TABLE vector_mirror_changes (
    name         TEXT NOT NULL,
    document_key INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    PRIMARY KEY (name, document_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX vector_mirror_changes_by_seq ON vector_mirror_changes (name, seq);

-- Above every number that was given: those that were taken over are gone from the table.
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

-- A revision may bring other tags and dates, or another source, for the same chunks.
CREATE TRIGGER documents_revised AFTER UPDATE OF revision ON documents BEGIN
    INSERT INTO vector_mirror_changes (name, document_key, seq)
    SELECT n.name, NEW.document_key, n.seq FROM vector_mirror_next n WHERE true
    ON CONFLICT (name, document_key) DO UPDATE SET seq = excluded.seq;
END;
