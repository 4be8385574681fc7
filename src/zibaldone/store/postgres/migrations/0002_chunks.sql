-- Chunks, and the models and vectors of them.

CREATE TABLE zibaldone.chunks (
    chunk_key    bigint GENERATED ALWAYS AS IDENTITY,
    document_key bigint NOT NULL REFERENCES zibaldone.documents (document_key),
    namespace    text COLLATE "C" NOT NULL,
    chunk_index  bigint NOT NULL,
    start_char   bigint NOT NULL,
    end_char     bigint NOT NULL,
    heading      text NOT NULL,
    body         text NOT NULL,
    content_hash bytea NOT NULL,
    PRIMARY KEY (chunk_key) INCLUDE (document_key, namespace)  -- searches ask for these of many
);

CREATE INDEX chunks_by_document ON zibaldone.chunks (document_key, chunk_index);

CREATE TABLE zibaldone.models (
    model_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity      text COLLATE "C" NOT NULL UNIQUE,
    dimensions    bigint NOT NULL,
    created_at_us bigint NOT NULL
);

-- Rounded to half precision. A model with many vectors gets an index of them (vector_indexes.py).
CREATE TABLE zibaldone.vectors (
    chunk_key    bigint NOT NULL,
    model_id     bigint NOT NULL REFERENCES zibaldone.models (model_id),
    namespace    text COLLATE "C" NOT NULL,
    document_key bigint NOT NULL,
    PRIMARY KEY (chunk_key, model_id)
) WITH (toast_tuple_target = 8160);  -- in the row: what is compared with many is not fetched apart

-- pgvector may be in any schema.
DO $$
BEGIN
    EXECUTE format('ALTER TABLE zibaldone.vectors ADD COLUMN vector %s.halfvec NOT NULL', (
        SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'vector'));
END
$$;

CREATE INDEX vectors_by_model ON zibaldone.vectors (model_id, document_key);

CREATE TABLE zibaldone.index_workers (
    worker_key     bigint PRIMARY KEY,
    model_id       bigint NOT NULL REFERENCES zibaldone.models (model_id),
    alive_until_us bigint NOT NULL
);
