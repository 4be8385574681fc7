-- name: add
-- A new key.
INSERT INTO api_keys (key_id, secret_hash, label, namespace, path_prefix, effects, profiles,
    created_at_us, expires_at_us)
VALUES (:key_id, :secret_hash, :label, :namespace, :path_prefix, :effects, :profiles,
    :created_at_us, :expires_at_us);

-- name: all
-- Every key there ever was, oldest first; keys are the operator's, not a tenant's.
SELECT key_id, secret_hash, label, namespace, path_prefix, effects, profiles, created_at_us,
       expires_at_us, revoked_at_us
FROM api_keys ORDER BY created_at_us, key_id;

-- name: revoke
-- End a key; it stays in the table so that the audit trail can be read.
UPDATE api_keys SET revoked_at_us = :revoked_at_us
WHERE key_id = :key_id AND revoked_at_us IS NULL
RETURNING key_id;

-- name: delete
-- Forget a key, also one that has ended; where no key is left, none is needed.
DELETE FROM api_keys WHERE key_id = :key_id RETURNING key_id;
