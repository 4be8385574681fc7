-- name: begin
-- Note changes for a mirror from now on; nothing, if that is done already.
INSERT INTO zibaldone.vector_mirrors (name, begun_at_us) VALUES (%(name)s, %(at_us)s)
ON CONFLICT (name) DO NOTHING RETURNING name;

-- name: note_all
-- Note every document.
INSERT INTO zibaldone.vector_mirror_changes (name, document_key)
SELECT %(name)s, document_key FROM zibaldone.documents
ON CONFLICT (name, document_key) DO UPDATE SET seq = excluded.seq;

-- name: forget_changes
-- What a mirror that ends had yet to take over.
DELETE FROM zibaldone.vector_mirror_changes WHERE name = %(name)s;

-- name: end
-- Forget a mirror.
DELETE FROM zibaldone.vector_mirrors WHERE name = %(name)s RETURNING name;

-- name: all
-- Every mirror, with how many documents it has yet to take over.
SELECT m.name, m.applied_seq,
       (SELECT count(*) FROM zibaldone.vector_mirror_changes c WHERE c.name = m.name)
FROM zibaldone.vector_mirrors m ORDER BY m.name;

-- name: lease
-- The right to fill a mirror, where nobody else has it.
UPDATE zibaldone.vector_mirrors SET lease_owner = %(owner)s, leased_until_us = %(until_us)s
WHERE name = %(name)s
  AND (lease_owner IS NULL OR lease_owner = %(owner)s OR leased_until_us <= %(now_us)s
       OR leased_until_us > %(now_us)s + 2 * (%(until_us)s - %(now_us)s))
RETURNING name;

-- name: changes
-- Documents that a mirror has yet to take over, with how many chunks they have.
SELECT c.document_key, c.seq,
       (SELECT count(*) FROM zibaldone.chunks k WHERE k.document_key = c.document_key)
FROM zibaldone.vector_mirror_changes c WHERE c.name = %(name)s
ORDER BY c.seq LIMIT %(limit)s;

-- name: chunks
-- Vectors of live documents, with what searches filter by.
SELECT v.document_key, v.chunk_key, d.namespace, d.document_id, d.source_id, f.created_us, f.score,
       f.post_type,
       ARRAY(SELECT g.tag FROM zibaldone.document_tags g WHERE g.document_key = v.document_key),
       v.vector::text
FROM zibaldone.vectors v JOIN zibaldone.documents d USING (document_key)
JOIN zibaldone.facets f USING (document_key)
WHERE v.model_id = %(model_id)s AND v.document_key = ANY(%(document_keys)s::bigint[])
  AND d.deleted_at_us IS NULL;

-- name: applied
-- These changes were taken over, unless there are later ones of the same documents.
WITH held AS (
    SELECT name FROM zibaldone.vector_mirrors WHERE name = %(name)s AND lease_owner = %(owner)s
    FOR NO KEY UPDATE
), gone AS (
    DELETE FROM zibaldone.vector_mirror_changes c
    USING held, unnest(%(document_keys)s::bigint[], %(seqs)s::bigint[]) t (document_key, seq)
    WHERE c.name = held.name AND c.document_key = t.document_key AND c.seq = t.seq
)
UPDATE zibaldone.vector_mirrors m SET applied_seq = greatest(m.applied_seq, %(seq)s)
FROM held WHERE m.name = held.name RETURNING m.name;

-- name: unmirrored
-- Documents of any namespace that a mirror has yet to take over; NULL: there is no such mirror.
SELECT c.document_key FROM zibaldone.vector_mirror_changes c WHERE c.name = %(name)s
UNION ALL
SELECT NULL WHERE NOT EXISTS (SELECT 1 FROM zibaldone.vector_mirrors WHERE name = %(name)s)
LIMIT %(limit)s;

-- name: ids
-- The ids of those of some documents that the tenant sees.
SELECT d.document_id FROM zibaldone.documents d
WHERE d.document_key = ANY(%(document_keys)s::bigint[]) AND d.namespace = %(namespace)s
  AND d.deleted_at_us IS NULL AND d.document_id >= %(start)s
  AND (%(end)s::text IS NULL OR d.document_id < %(end)s);
