-- What each namespace holds, for quotas: kept up to date by every write, so that it is known at once.
CREATE TABLE usage (
    namespace TEXT PRIMARY KEY,
    documents INTEGER NOT NULL,   -- live ones
    revisions INTEGER NOT NULL,   -- all that are kept, the current ones and those of deleted documents too
    bytes     INTEGER NOT NULL    -- of all these revisions, as stored: text, title, tags and metadata
) STRICT, WITHOUT ROWID;

INSERT INTO usage (namespace, documents, revisions, bytes)
SELECT d.namespace, sum(d.deleted_at_us IS NULL), count(*) + coalesce(sum(r.revisions), 0),
       sum(octet_length(d.title) + octet_length(d.tags) + octet_length(d.metadata)
           + octet_length(b.body)) + coalesce(sum(r.bytes), 0)
FROM documents d
JOIN bodies b USING (document_key)
LEFT JOIN (
    SELECT document_key, count(*) AS revisions,
           sum(octet_length(title) + octet_length(tags) + octet_length(metadata)
               + octet_length(body)) AS bytes
    FROM revisions GROUP BY document_key) r USING (document_key)
GROUP BY d.namespace;
