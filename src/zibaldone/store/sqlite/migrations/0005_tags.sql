-- Tags as they are compared from now on, also where they came as metadata or from a time when only
-- ASCII was folded: capitals, accents apart from their letters, repeated blanks. (fold_tag is ours.)
CREATE TEMP TABLE refolded AS
SELECT tag, document_key, fold_tag(tag) AS folded FROM document_tags
WHERE tag <> fold_tag(tag) OR tag = '';

DELETE FROM document_tags WHERE (tag, document_key) IN (SELECT tag, document_key FROM refolded);

INSERT OR IGNORE INTO document_tags (tag, document_key)
SELECT folded, document_key FROM refolded WHERE folded <> '';

DROP TABLE refolded;
