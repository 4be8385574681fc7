-- For lists of what was written last.
CREATE INDEX documents_recent ON documents (namespace, updated_at_us, document_id)
    WHERE deleted_at_us IS NULL;
