-- By which chunking of its source a document was cut: a source that gets another chunking gets
-- another number, and documents with an earlier one are still to be cut.
ALTER TABLE sources ADD COLUMN chunking_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN chunking_version INTEGER NOT NULL DEFAULT 0;

-- Until now a mark in the definition said so, for all documents of the source.
UPDATE sources SET chunking_version = 1, definition = json_remove(definition, '$.chunking_unfinished')
WHERE json_type(definition, '$.chunking_unfinished') IS NOT NULL;
