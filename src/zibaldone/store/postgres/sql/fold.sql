-- name: usage
-- Sum up what writes added to each namespace.
WITH gone AS (
    DELETE FROM zibaldone.usage_changes WHERE change_key IN (
        SELECT change_key FROM zibaldone.usage_changes ORDER BY change_key LIMIT %(limit)s)
    RETURNING namespace, documents, revisions, bytes
)
INSERT INTO zibaldone.usage (namespace, documents, revisions, bytes)
SELECT namespace, sum(documents), sum(revisions), sum(bytes) FROM gone GROUP BY namespace
ON CONFLICT (namespace) DO UPDATE SET documents = usage.documents + excluded.documents,
    revisions = usage.revisions + excluded.revisions, bytes = usage.bytes + excluded.bytes;
