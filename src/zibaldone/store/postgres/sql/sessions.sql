-- name: get
-- One session.
SELECT owner, assistant, session_id, turns, tokens, input_tokens, cached_tokens, cache_write_tokens,
       output_tokens, saved_tokens, cost, state, created_at_us, updated_at_us, session_key
FROM zibaldone.consult_sessions
WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
  AND session_id = %(session_id)s;

-- name: lock
-- One session that is about to be changed.
SELECT owner, assistant, session_id, turns, tokens, input_tokens, cached_tokens, cache_write_tokens,
       output_tokens, saved_tokens, cost, state, created_at_us, updated_at_us, session_key
FROM zibaldone.consult_sessions
WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
  AND session_id = %(session_id)s FOR UPDATE;

-- name: page
-- Sessions of a key that have a turn, the one that was used last first.
SELECT owner, assistant, session_id, turns, tokens, input_tokens, cached_tokens, cache_write_tokens,
       output_tokens, saved_tokens, cost, state, created_at_us, updated_at_us, session_key
FROM zibaldone.consult_sessions
WHERE namespace = %(namespace)s AND owner = %(owner)s AND turns > 0
  AND (%(assistant)s::text IS NULL OR assistant = %(assistant)s)
  AND (updated_at_us, session_key) < (%(before_us)s, %(before_key)s)
ORDER BY updated_at_us DESC, session_key DESC LIMIT %(limit)s;

-- name: put
-- What is remembered of a session, its messages and files apart.
INSERT INTO zibaldone.consult_sessions (namespace, owner, assistant, session_id, turns, tokens, input_tokens,
    cached_tokens, cache_write_tokens, output_tokens, saved_tokens, cost, state, created_at_us,
    updated_at_us)
VALUES (%(namespace)s, %(owner)s, %(assistant)s, %(session_id)s, %(turns)s, %(tokens)s, %(input_tokens)s,
    %(cached_tokens)s, %(cache_write_tokens)s, %(output_tokens)s, %(saved_tokens)s, %(cost)s, %(state)s,
    %(created_at_us)s, %(updated_at_us)s)
ON CONFLICT (namespace, owner, assistant, session_id) DO UPDATE SET turns = excluded.turns,
    tokens = excluded.tokens, input_tokens = excluded.input_tokens,
    cached_tokens = excluded.cached_tokens, cache_write_tokens = excluded.cache_write_tokens,
    output_tokens = excluded.output_tokens, saved_tokens = excluded.saved_tokens,
    cost = excluded.cost, state = excluded.state, updated_at_us = excluded.updated_at_us;

-- name: remove
-- A session.
DELETE FROM zibaldone.consult_sessions
WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
  AND session_id = %(session_id)s;

-- name: messages
-- What was said in a session, from a position on.
SELECT message FROM zibaldone.consult_messages
WHERE position >= %(from_position)s AND session_key = (
    SELECT session_key FROM zibaldone.consult_sessions
    WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
      AND session_id = %(session_id)s)
ORDER BY position;

-- name: message_count
-- How many messages a session has.
SELECT count(*) FROM zibaldone.consult_messages
WHERE session_key = (
    SELECT session_key FROM zibaldone.consult_sessions
    WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
      AND session_id = %(session_id)s);

-- name: cut_messages
-- What was said in a session, from a position on, is forgotten.
DELETE FROM zibaldone.consult_messages
WHERE position >= %(from_position)s AND session_key = (
    SELECT session_key FROM zibaldone.consult_sessions
    WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
      AND session_id = %(session_id)s);

-- name: put_messages
-- Messages, from a position on.
INSERT INTO zibaldone.consult_messages (session_key, position, message)
SELECT s.session_key, %(from_position)s + n.ordinal - 1, n.message
FROM zibaldone.consult_sessions s,
     unnest(%(messages)s::bytea[]) WITH ORDINALITY n (message, ordinal)
WHERE s.namespace = %(namespace)s AND s.owner = %(owner)s AND s.assistant = %(assistant)s
  AND s.session_id = %(session_id)s;

-- name: stable
-- The list of a session.
SELECT inline_paths FROM zibaldone.stable_inline_lists
WHERE session_key = (
    SELECT session_key FROM zibaldone.consult_sessions
    WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
      AND session_id = %(session_id)s);

-- name: put_stable
-- The list of a session; one that is there stays.
INSERT INTO zibaldone.stable_inline_lists (session_key, inline_paths, created_at, updated_at)
SELECT session_key, %(inline_paths)s, %(at_us)s, %(at_us)s FROM zibaldone.consult_sessions
WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
  AND session_id = %(session_id)s
ON CONFLICT (session_key) DO NOTHING;

-- name: remove_stable
-- The list of a session.
DELETE FROM zibaldone.stable_inline_lists
WHERE session_key = (
    SELECT session_key FROM zibaldone.consult_sessions
    WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
      AND session_id = %(session_id)s);

-- name: folders
-- The folders of the files of a session.
SELECT sent_folders FROM zibaldone.consult_sessions
WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
  AND session_id = %(session_id)s;

-- name: put_folders
-- The folders of the files of a session.
UPDATE zibaldone.consult_sessions SET sent_folders = %(folders)s
WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
  AND session_id = %(session_id)s;

-- name: sent
-- The files of a session that the assistant has.
SELECT file_path, last_size, last_mtime, digest FROM zibaldone.sent_files
WHERE session_key = (
    SELECT session_key FROM zibaldone.consult_sessions
    WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
      AND session_id = %(session_id)s);

-- name: put_sent
-- Files that were sent.
INSERT INTO zibaldone.sent_files (session_key, file_path, last_size, last_mtime, digest)
SELECT s.session_key, n.file_path, n.last_size, n.last_mtime, n.digest
FROM zibaldone.consult_sessions s,
     unnest(%(paths)s::text[], %(sizes)s::bigint[], %(mtimes)s::bigint[], %(digests)s::text[])
         n (file_path, last_size, last_mtime, digest)
WHERE s.namespace = %(namespace)s AND s.owner = %(owner)s AND s.assistant = %(assistant)s
  AND s.session_id = %(session_id)s
ON CONFLICT (session_key, file_path) DO UPDATE SET last_size = excluded.last_size,
    last_mtime = excluded.last_mtime, digest = excluded.digest;

-- name: remove_sent
-- Files that the assistant does not have any more.
DELETE FROM zibaldone.sent_files
WHERE file_path = ANY(%(paths)s::text[]) AND session_key = (
    SELECT session_key FROM zibaldone.consult_sessions
    WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
      AND session_id = %(session_id)s);

-- name: remove_all_sent
-- All files of a session.
DELETE FROM zibaldone.sent_files
WHERE session_key = (
    SELECT session_key FROM zibaldone.consult_sessions
    WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
      AND session_id = %(session_id)s);

-- name: lease
-- The right to a session, where no other turn has it.
-- A clock that was far ahead counts for nothing.
INSERT INTO zibaldone.consult_sessions (namespace, owner, assistant, session_id, created_at_us, updated_at_us,
                              lease_owner, leased_until_us)
VALUES (%(namespace)s, %(owner)s, %(assistant)s, %(session_id)s, %(now_us)s, %(now_us)s, %(lease_owner)s, %(until_us)s)
ON CONFLICT (namespace, owner, assistant, session_id) DO UPDATE
SET lease_owner = excluded.lease_owner, leased_until_us = excluded.leased_until_us
WHERE consult_sessions.lease_owner IS NULL
   OR consult_sessions.lease_owner = excluded.lease_owner
   OR consult_sessions.leased_until_us <= %(now_us)s
   OR left(consult_sessions.lease_owner, length(%(turn)s::text)) = %(turn)s::text
   OR consult_sessions.leased_until_us > %(now_us)s + 2 * (%(until_us)s - %(now_us)s)
RETURNING session_key;

-- name: holds
-- Whether a lease is still that of a holder.
SELECT 1 FROM zibaldone.consult_sessions
WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
  AND session_id = %(session_id)s AND lease_owner = %(lease_owner)s;

-- name: release
-- A lease is given back.
UPDATE zibaldone.consult_sessions SET lease_owner = NULL, leased_until_us = 0
WHERE namespace = %(namespace)s AND owner = %(owner)s AND assistant = %(assistant)s
  AND session_id = %(session_id)s AND lease_owner = %(lease_owner)s;

-- name: spent
-- What a key spent on a day.
SELECT tokens, cost FROM zibaldone.consult_spending
WHERE namespace = %(namespace)s AND owner = %(owner)s AND day = %(day)s;

-- name: spend
-- More that a key spent on a day.
INSERT INTO zibaldone.consult_spending (namespace, owner, day, tokens, cost)
VALUES (%(namespace)s, %(owner)s, %(day)s, %(tokens)s, %(cost)s)
ON CONFLICT (namespace, owner, day)
DO UPDATE SET tokens = consult_spending.tokens + excluded.tokens,
    cost = consult_spending.cost + excluded.cost
RETURNING tokens, cost;
