-- Chunks whose terms do not follow them yet (`store.sqlite.term_steps`): of one that is there they
-- are still to be stored, of one that is gone they are still to be removed.
CREATE TABLE unsettled_terms (chunk_key INTEGER PRIMARY KEY) STRICT;
