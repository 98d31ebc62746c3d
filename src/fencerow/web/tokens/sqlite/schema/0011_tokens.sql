-- compatible_from: 1
-- API tokens: who may call over HTTP, and what for. The token itself is stored nowhere.
CREATE TABLE fencerow.api_tokens (
    id TEXT PRIMARY KEY NOT NULL CHECK (typeof(id) = 'text' AND length(id) = 36),
    name TEXT NOT NULL CHECK (typeof(name) = 'text' AND length(name) BETWEEN 1 AND 100),
    hash TEXT NOT NULL UNIQUE CHECK (typeof(hash) = 'text' AND length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*'),
    scopes TEXT NOT NULL
        CHECK (typeof(scopes) = 'text' AND json_array_length(scopes) > 0
               AND trim(replace(replace(replace(replace(replace(replace(scopes, '"submit"', ''), '"signal"', ''), '"read"', ''),
                                                '"cancel"', ''), '"operate"', ''), '"admin"', ''), '[, ]') = ''),
    queues TEXT CHECK (queues IS NULL OR (typeof(queues) = 'text' AND json_array_length(queues) > 0)),
    created_at INTEGER NOT NULL CHECK (typeof(created_at) = 'integer'),
    created_by TEXT CHECK (created_by IS NULL OR (typeof(created_by) = 'text' AND length(created_by) BETWEEN 1 AND 500)),
    expires_at INTEGER CHECK (expires_at IS NULL OR (typeof(expires_at) = 'integer' AND expires_at > created_at)),
    revoked_at INTEGER CHECK (typeof(revoked_at) IN ('integer', 'null')),
    revoked_by TEXT CHECK (revoked_by IS NULL OR (typeof(revoked_by) = 'text' AND length(revoked_by) BETWEEN 1 AND 500)),
    last_used_at INTEGER CHECK (typeof(last_used_at) IN ('integer', 'null')),
    CHECK (revoked_by IS NULL OR revoked_at IS NOT NULL),
    CHECK (queues IS NULL OR instr(scopes, '"admin"') = 0)
) WITHOUT ROWID;
CREATE INDEX fencerow.api_tokens_over ON fencerow.api_tokens (COALESCE(revoked_at, expires_at));
