-- Who works on the outbox. Its rows and the documents' status know no model, so that all who live
-- use the same; a row is removed by its worker at its end, and void after a while without a sign.
CREATE TABLE index_workers (
    worker_key     INTEGER PRIMARY KEY,
    model_id       INTEGER NOT NULL REFERENCES models (model_id),
    alive_until_us INTEGER NOT NULL
) STRICT;
