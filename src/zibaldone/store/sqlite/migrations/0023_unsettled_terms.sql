-- Chunks whose terms do not follow them yet (`store.sqlite.term_steps`): of one that is there they
-- are still to be stored, of one that is gone they are still to be removed.
CREATE TABLE unsettled_terms (chunk_key INTEGER PRIMARY KEY) STRICT;

-- A part of the index is written anew when half of its entries are removed ones, not at a tenth:
-- where a long document is removed in steps, it would be written anew ten times.
INSERT INTO chunk_terms (chunk_terms, rank) VALUES ('deletemerge', 50);
