-- name: add
-- What a write adds to its namespace; what that holds then comes back.
INSERT INTO usage (namespace, documents, revisions, bytes)
VALUES (:namespace, :documents, :revisions, :bytes)
ON CONFLICT (namespace) DO UPDATE SET documents = documents + excluded.documents,
    revisions = revisions + excluded.revisions, bytes = bytes + excluded.bytes
RETURNING documents, revisions, bytes;

-- name: all
-- What each namespace holds.
SELECT namespace, documents, revisions, bytes FROM usage ORDER BY namespace;
