-- What is counted for each search, to say how much it can find by keyword only: also what failed.
DROP INDEX documents_pending;
CREATE INDEX documents_without_vectors ON documents (namespace, document_id)
    WHERE vector_status IN ('pending', 'error') AND deleted_at_us IS NULL;
