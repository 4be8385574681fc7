-- API keys: only a hash of the secret is kept.
CREATE TABLE api_keys (
    key_id          TEXT PRIMARY KEY,
    secret_hash     BLOB NOT NULL UNIQUE,
    label           TEXT NOT NULL,
    namespace       TEXT NOT NULL,
    path_prefix     TEXT NOT NULL DEFAULT '',
    effects         TEXT NOT NULL CHECK (json_valid(effects)),
    profiles        TEXT CHECK (profiles IS NULL OR json_valid(profiles)),
    created_at_us   INTEGER NOT NULL,
    expires_at_us   INTEGER,
    revoked_at_us   INTEGER
) STRICT;
