-- compatible_from: 1
-- API tokens: who may call over HTTP, and what for. The token itself is stored nowhere.

CREATE TABLE fencerow.api_tokens (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),     -- several tokens may have one, so that one can follow another
    hash text NOT NULL UNIQUE CHECK (hash ~ '^[0-9a-f]{64}$'),     -- SHA-256 of the token
    scopes text[] NOT NULL
        CHECK (cardinality(scopes) > 0 AND array_ndims(scopes) = 1 AND scopes <@ '{submit,signal,read,cancel,operate,admin}'),
    queues text[]                                                  -- that it reaches; NULL: all
        CHECK (cardinality(queues) > 0 AND array_ndims(queues) = 1 AND array_position(queues, NULL) IS NULL),
    created_at timestamptz NOT NULL CHECK (isfinite(created_at)),
    created_by text CHECK (length(created_by) BETWEEN 1 AND 500),
    expires_at timestamptz CHECK (expires_at > created_at AND isfinite(expires_at)),  -- NULL: never
    revoked_at timestamptz CHECK (isfinite(revoked_at)),
    revoked_by text CHECK (length(revoked_by) BETWEEN 1 AND 500),
    last_used_at timestamptz CHECK (isfinite(last_used_at)),       -- to the minute, or nearly
    CHECK (revoked_by IS NULL OR revoked_at IS NOT NULL),
    CHECK (queues IS NULL OR NOT scopes @> '{admin}')
);
-- What is over, by the time since when; and what will be.
CREATE INDEX api_tokens_over ON fencerow.api_tokens (COALESCE(revoked_at, expires_at));
