-- name: begin
-- Note changes for a mirror from now on; nothing, if that is done already.
INSERT INTO vector_mirrors (name, begun_at_us) VALUES (:name, :at_us)
ON CONFLICT (name) DO NOTHING RETURNING name;

-- name: note_all
-- Note every document.
INSERT INTO vector_mirror_changes (name, document_key, seq)
SELECT n.name, d.document_key, n.seq + row_number() OVER (ORDER BY d.document_key)
FROM (SELECT name, seq FROM vector_mirror_next WHERE name = :name) n CROSS JOIN documents d
WHERE true
ON CONFLICT (name, document_key) DO UPDATE SET seq = excluded.seq;

-- name: forget_changes
-- What a mirror that ends had yet to take over.
DELETE FROM vector_mirror_changes WHERE name = :name;

-- name: end
-- Forget a mirror.
DELETE FROM vector_mirrors WHERE name = :name RETURNING name;

-- name: all
-- Every mirror, with how many documents it has yet to take over.
SELECT m.name, m.applied_seq,
       (SELECT count(*) FROM vector_mirror_changes c WHERE c.name = m.name)
FROM vector_mirrors m ORDER BY m.name;

-- name: lease
-- The right to fill a mirror, where nobody else has it.
UPDATE vector_mirrors SET lease_owner = :owner, leased_until_us = :until_us
WHERE name = :name
  AND (lease_owner IS NULL OR lease_owner = :owner OR leased_until_us <= :now_us
       OR leased_until_us > :now_us + 2 * (:until_us - :now_us))
RETURNING name;

-- name: changes
-- Documents that a mirror has yet to take over, with how many chunks they have.
SELECT c.document_key, c.seq,
       (SELECT count(*) FROM chunks k WHERE k.document_key = c.document_key)
FROM vector_mirror_changes c WHERE c.name = :name
ORDER BY c.seq LIMIT :limit;

-- name: chunks
-- Vectors of live documents, with what searches filter by.
SELECT d.document_key, c.chunk_key, d.namespace, d.document_id, d.source_id, f.created_us, f.score,
       f.post_type,
       (SELECT json_group_array(g.tag) FROM document_tags g WHERE g.document_key = d.document_key),
       v.vector
FROM json_each(:document_keys) k
CROSS JOIN documents d ON d.document_key = k.value
CROSS JOIN facets f ON f.document_key = d.document_key
CROSS JOIN chunks c ON c.document_key = d.document_key
CROSS JOIN vectors v ON v.model_id = :model_id AND v.chunk_key = c.chunk_key
WHERE d.deleted_at_us IS NULL;

-- name: is_held
-- Whether a mirror is filled under this token.
SELECT 1 FROM vector_mirrors WHERE name = :name AND lease_owner = :owner;

-- name: applied
-- These changes were taken over, unless there are later ones of the same documents.
DELETE FROM vector_mirror_changes
WHERE name = :name
  AND (document_key, seq) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:changes));

-- name: advance
-- How far a mirror is.
UPDATE vector_mirrors SET applied_seq = max(applied_seq, :seq) WHERE name = :name;

-- name: unmirrored
-- Documents of any namespace that a mirror has yet to take over; NULL: there is no such mirror.
SELECT document_key FROM (
    SELECT document_key FROM vector_mirror_changes WHERE name = :name
    UNION ALL
    SELECT NULL WHERE NOT EXISTS (SELECT 1 FROM vector_mirrors WHERE name = :name))
LIMIT :limit;

-- name: ids
-- The ids of those of some documents that the tenant sees.
SELECT d.document_id FROM json_each(:document_keys) k
CROSS JOIN documents d ON d.document_key = k.value
WHERE d.namespace = :namespace AND d.deleted_at_us IS NULL
  AND d.document_id >= :start AND (:end IS NULL OR d.document_id < :end);
