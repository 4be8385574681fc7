-- name: get
-- One session.
SELECT owner, assistant, session_id, turns, tokens, input_tokens, cached_tokens, cache_write_tokens,
       output_tokens, saved_tokens, cost, state, created_at_us, updated_at_us, session_key
FROM consult_sessions
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id;

-- name: page
-- Sessions of a key that have a turn, the one that was used last first.
SELECT owner, assistant, session_id, turns, tokens, input_tokens, cached_tokens, cache_write_tokens,
       output_tokens, saved_tokens, cost, state, created_at_us, updated_at_us, session_key
FROM consult_sessions
WHERE namespace = :namespace AND owner = :owner AND turns > 0
  AND (:assistant IS NULL OR assistant = :assistant)
  AND (updated_at_us, session_key) < (:before_us, :before_key)
ORDER BY updated_at_us DESC, session_key DESC LIMIT :limit;

-- name: put
-- What is remembered of a session, its messages and files apart.
INSERT INTO consult_sessions (namespace, owner, assistant, session_id, turns, tokens, input_tokens,
    cached_tokens, cache_write_tokens, output_tokens, saved_tokens, cost, state, created_at_us,
    updated_at_us)
VALUES (:namespace, :owner, :assistant, :session_id, :turns, :tokens, :input_tokens,
    :cached_tokens, :cache_write_tokens, :output_tokens, :saved_tokens, :cost, :state,
    :created_at_us, :updated_at_us)
ON CONFLICT (namespace, owner, assistant, session_id) DO UPDATE SET turns = excluded.turns,
    tokens = excluded.tokens, input_tokens = excluded.input_tokens,
    cached_tokens = excluded.cached_tokens, cache_write_tokens = excluded.cache_write_tokens,
    output_tokens = excluded.output_tokens, saved_tokens = excluded.saved_tokens,
    cost = excluded.cost, state = excluded.state, updated_at_us = excluded.updated_at_us;

-- name: remove
-- A session.
DELETE FROM consult_sessions
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id;

-- name: messages
-- What was said in a session, from a position on.
SELECT message FROM consult_messages
WHERE position >= :from_position AND session_key = (
    SELECT session_key FROM consult_sessions
    WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
      AND session_id = :session_id)
ORDER BY position;

-- name: message_count
-- How many messages a session has.
SELECT count(*) FROM consult_messages
WHERE session_key = (
    SELECT session_key FROM consult_sessions
    WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
      AND session_id = :session_id);

-- name: cut_messages
-- What was said in a session, from a position on, is forgotten.
DELETE FROM consult_messages
WHERE position >= :from_position AND session_key = (
    SELECT session_key FROM consult_sessions
    WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
      AND session_id = :session_id);

-- name: put_message
-- One message.
INSERT INTO consult_messages (session_key, position, message)
SELECT session_key, :position, :message FROM consult_sessions
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id;

-- name: stable
-- The list of a session.
SELECT inline_paths FROM stable_inline_lists
WHERE session_key = (
    SELECT session_key FROM consult_sessions
    WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
      AND session_id = :session_id);

-- name: put_stable
-- The list of a session; one that is there stays.
INSERT INTO stable_inline_lists (session_key, inline_paths, created_at, updated_at)
SELECT session_key, :inline_paths, :at_us, :at_us FROM consult_sessions
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id
ON CONFLICT (session_key) DO NOTHING;

-- name: remove_stable
-- The list of a session.
DELETE FROM stable_inline_lists
WHERE session_key = (
    SELECT session_key FROM consult_sessions
    WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
      AND session_id = :session_id);

-- name: folders
-- The folders of the files of a session.
SELECT sent_folders FROM consult_sessions
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id;

-- name: put_folders
-- The folders of the files of a session.
UPDATE consult_sessions SET sent_folders = :folders
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id;

-- name: sent
-- The files of a session that the assistant has.
SELECT file_path, last_size, last_mtime, digest FROM sent_files
WHERE session_key = (
    SELECT session_key FROM consult_sessions
    WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
      AND session_id = :session_id);

-- name: put_sent
-- A file that was sent.
INSERT INTO sent_files (session_key, file_path, last_size, last_mtime, digest)
SELECT session_key, :file_path, :last_size, :last_mtime, :digest FROM consult_sessions
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id
ON CONFLICT (session_key, file_path) DO UPDATE SET last_size = excluded.last_size,
    last_mtime = excluded.last_mtime, digest = excluded.digest;

-- name: remove_sent
-- Files that the assistant does not have any more.
DELETE FROM sent_files
WHERE file_path IN (SELECT value FROM json_each(:paths)) AND session_key = (
    SELECT session_key FROM consult_sessions
    WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
      AND session_id = :session_id);

-- name: remove_all_sent
-- All files of a session.
DELETE FROM sent_files
WHERE session_key = (
    SELECT session_key FROM consult_sessions
    WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
      AND session_id = :session_id);

-- name: lease
-- The right to a session, where no other turn has it.
-- A clock that was far ahead counts for nothing.
INSERT INTO consult_sessions (namespace, owner, assistant, session_id, created_at_us, updated_at_us,
                              lease_owner, leased_until_us)
VALUES (:namespace, :owner, :assistant, :session_id, :now_us, :now_us, :lease_owner, :until_us)
ON CONFLICT (namespace, owner, assistant, session_id) DO UPDATE
SET lease_owner = excluded.lease_owner, leased_until_us = excluded.leased_until_us
WHERE lease_owner IS NULL OR lease_owner = excluded.lease_owner OR leased_until_us <= :now_us
   OR substr(lease_owner, 1, length(:turn)) = :turn
   OR leased_until_us > :now_us + 2 * (:until_us - :now_us)
RETURNING session_key;

-- name: holds
-- Whether a lease is still that of a holder.
SELECT 1 FROM consult_sessions
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id AND lease_owner = :lease_owner;

-- name: release
-- A lease is given back.
UPDATE consult_sessions SET lease_owner = NULL, leased_until_us = 0
WHERE namespace = :namespace AND owner = :owner AND assistant = :assistant
  AND session_id = :session_id AND lease_owner = :lease_owner;

-- name: spent
-- What a key spent on a day.
SELECT tokens, cost FROM consult_spending
WHERE namespace = :namespace AND owner = :owner AND day = :day;

-- name: spend
-- More that a key spent on a day.
INSERT INTO consult_spending (namespace, owner, day, tokens, cost)
VALUES (:namespace, :owner, :day, :tokens, :cost)
ON CONFLICT (namespace, owner, day)
DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost
RETURNING tokens, cost;
