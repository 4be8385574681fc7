-- Indexes of vectors outside of the database (Qdrant). A document whose vectors or facets changed is
-- noted for each of them in the same transaction, until it was taken over there.

CREATE TABLE zibaldone.vector_mirrors (
    name            text COLLATE "C" PRIMARY KEY,
    applied_seq     bigint NOT NULL DEFAULT 0,
    begun_at_us     bigint NOT NULL,
    leased_until_us bigint NOT NULL DEFAULT 0,
    lease_owner     text
);

CREATE SEQUENCE zibaldone.vector_mirror_seq;

-- One row for a document, however often it changed; each change gives it a new number.
CREATE TABLE zibaldone.vector_mirror_changes (
    name         text COLLATE "C" NOT NULL,
    document_key bigint NOT NULL,
    seq          bigint NOT NULL DEFAULT nextval('zibaldone.vector_mirror_seq'),
    PRIMARY KEY (name, document_key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX vector_mirror_changes_by_seq ON zibaldone.vector_mirror_changes (name, seq);

CREATE FUNCTION zibaldone.note_changed_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO zibaldone.vector_mirror_changes (name, document_key)
    SELECT m.name, c.document_key
    FROM zibaldone.vector_mirrors m CROSS JOIN (SELECT DISTINCT document_key FROM changed) c
    ORDER BY 1, 2
    ON CONFLICT (name, document_key) DO UPDATE SET seq = excluded.seq;
    RETURN NULL;
END
$$;

CREATE TRIGGER note_added AFTER INSERT ON zibaldone.vectors REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION zibaldone.note_changed_vectors();
CREATE TRIGGER note_updated AFTER UPDATE ON zibaldone.vectors REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION zibaldone.note_changed_vectors();
CREATE TRIGGER note_removed AFTER DELETE ON zibaldone.vectors REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION zibaldone.note_changed_vectors();

-- A revision may bring other tags and dates, or another source, for the same chunks.
CREATE FUNCTION zibaldone.note_revised_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO zibaldone.vector_mirror_changes (name, document_key)
    SELECT m.name, NEW.document_key FROM zibaldone.vector_mirrors m ORDER BY 1
    ON CONFLICT (name, document_key) DO UPDATE SET seq = excluded.seq;
    RETURN NULL;
END
$$;

CREATE TRIGGER note_revised AFTER UPDATE OF revision ON zibaldone.documents
    FOR EACH ROW EXECUTE FUNCTION zibaldone.note_revised_document();
