-- Terms reach the index stemmed: its tokenizer does not stem any more. (index_terms is ours; the
-- table keeps no text to make them of, so all of them are made anew.)
DROP TABLE chunk_terms;

CREATE VIRTUAL TABLE chunk_terms USING fts5(
    title, heading, body,
    content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cn Cf'"
);

INSERT INTO chunk_terms (rowid, title, heading, body)
SELECT c.chunk_key, index_terms(d.title), index_terms(c.heading), index_terms(c.body)
FROM chunks c JOIN documents d USING (document_key)
ORDER BY c.chunk_key;
