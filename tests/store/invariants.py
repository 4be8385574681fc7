"""What must hold in the tables whatever happened to the process that wrote them.

Each statement looks for what must not be there; the queue is not drained while they are asked.
"""

from __future__ import annotations

_IN_ANY = {
    "a document without its body": """
        SELECT document_id FROM documents
        WHERE document_key NOT IN (SELECT document_key FROM bodies)
    """,
    "a body without its document": """
        SELECT document_key FROM bodies
        WHERE document_key NOT IN (SELECT document_key FROM documents)
    """,
    "a history that is not revisions 1 to the one before the current": """
        SELECT document_id FROM documents d WHERE revision - 1 <> (
            SELECT count(*) FROM revisions r
            WHERE r.document_key = d.document_key AND r.revision BETWEEN 1 AND d.revision - 1)
    """,
    "a revision of no document, or ahead of it": """
        SELECT r.document_key, r.revision
        FROM revisions r LEFT JOIN documents d USING (document_key)
        WHERE d.document_key IS NULL OR r.revision >= d.revision
    """,
    "a revision without its one line in the audit trail": """
        SELECT document_id FROM documents d WHERE revision <> (
            SELECT count(DISTINCT a.revision) FROM audit a
            WHERE (a.namespace, a.document_id) = (d.namespace, d.document_id)
              AND a.revision BETWEEN 1 AND d.revision)
    """,
    "a line of the audit trail twice, or about nothing": """
        SELECT a.document_id, a.revision FROM audit a
        LEFT JOIN documents d USING (namespace, document_id)
        GROUP BY a.namespace, a.document_id, a.revision
        HAVING count(*) > 1 OR max(d.revision) IS NULL OR a.revision > max(d.revision)
    """,
    "a live document without passages": """
        SELECT document_id FROM documents d JOIN bodies USING (document_key)
        WHERE deleted_at_us IS NULL AND trim(body) <> ''
          AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.document_key = d.document_key)
    """,
    "a deleted document with passages": """
        SELECT document_id FROM documents JOIN chunks USING (document_key)
        WHERE deleted_at_us IS NOT NULL
    """,
    "a passage that is not what its document says there": """
        SELECT chunk_key FROM chunks c JOIN bodies b USING (document_key)
        WHERE substr(b.body, CAST(c.start_char + 1 AS INTEGER),
                     CAST(c.end_char - c.start_char AS INTEGER)) <> c.body
    """,
}

IN_SQLITE = {
    **_IN_ANY,
    "a change that the index pipeline would not hear of": """
        SELECT document_id FROM documents d WHERE vector_status = 'pending' AND NOT EXISTS (
            SELECT 1 FROM jobs j WHERE j.kind = 'vectors'
              AND j.subject = d.document_key AND j.payload ->> 'revision' = d.revision)
    """,
    "a job ahead of its document": """
        SELECT j.job_id FROM jobs j LEFT JOIN documents d ON d.document_key = j.subject
        WHERE j.kind = 'vectors'
          AND (d.document_key IS NULL OR j.payload ->> 'revision' > d.revision)
    """,
    "a passage that the keyword index does not know, or the other way": """
        SELECT * FROM (
            SELECT chunk_key FROM chunks WHERE chunk_key NOT IN (SELECT id FROM chunk_terms_docsize)
            UNION ALL
            SELECT id FROM chunk_terms_docsize WHERE id NOT IN (SELECT chunk_key FROM chunks)
        ) WHERE chunk_key NOT IN (SELECT chunk_key FROM unsettled_terms)
    """,
}

IN_POSTGRES = {
    **_IN_ANY,
    "a change that the index pipeline would not hear of": """
        SELECT document_id FROM documents d WHERE vector_status = 'pending' AND NOT EXISTS (
            SELECT 1 FROM jobs j WHERE j.kind = 'vectors' AND j.subject = d.document_key::text
              AND (j.payload::json ->> 'revision')::bigint = d.revision)
    """,
    "a job ahead of its document": """
        SELECT j.job_id FROM jobs j LEFT JOIN documents d ON d.document_key::text = j.subject
        WHERE j.kind = 'vectors' AND (
            d.document_key IS NULL OR (j.payload::json ->> 'revision')::bigint > d.revision)
    """,
}
"""The check of the engine itself compares chunks with the keyword index."""
