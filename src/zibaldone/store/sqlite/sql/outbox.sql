-- name: add
-- One change for the index pipeline.
INSERT INTO outbox (document_key, revision, kind, at_us)
VALUES (:document_key, :revision, :kind, :at_us);
