-- compatible_from: 1
-- What was done once, what a window has seen, and what is written of a source whose rows are replaced.

-- A key is taken before its effect. The token is made anew for each taking, so that whoever lost the key can
-- neither end nor free what another has taken since. expires_at counts from the end, or from the end of the lease
-- of one that nobody ended.
-- A later attempt of the same owner takes over what an earlier one has left; the same attempt does not.
CREATE TABLE fencerow.once_keys (
    scope text NOT NULL,
    key text NOT NULL,
    owner text NOT NULL,
    attempt bigint,                              -- of the owner; NULL: it numbers none, and nobody takes over before `until`
    token uuid NOT NULL,
    fingerprint text NOT NULL,
    reserved_at timestamptz NOT NULL,
    until timestamptz NOT NULL,
    done_at timestamptz,
    expires_at timestamptz NOT NULL,
    result json,
    PRIMARY KEY (scope, key)
);
CREATE INDEX once_keys_expiry ON fencerow.once_keys (expires_at);

-- The first one of a window, with the value that later ones get.
CREATE TABLE fencerow.dedupe_windows (
    name text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    token uuid NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (name, key)
);
CREATE INDEX dedupe_windows_expiry ON fencerow.dedupe_windows (until);

-- One row for each source in a user's table: which version and content stands there, and who computes the next.
CREATE TABLE fencerow.sources (
    target text NOT NULL,                        -- the user's table
    source text NOT NULL,
    number bigint NOT NULL,                      -- of the newest reservation; nothing lowers it
    version bigint,                              -- of what is written; NULL: numbers decide which is newer
    content_hash text,
    written_number bigint NOT NULL DEFAULT 0,    -- the reservation that is written; 0: none
    written_by uuid,                             -- its token: a write that is repeated finds that it was done
    row_count bigint,                            -- how many rows were written, where we know
    owner text,
    attempt bigint,                              -- of the owner, as of a key
    token uuid,                                  -- of whoever computes; NULL: nobody
    reserved_version bigint,
    reserved_hash text,
    until timestamptz,
    touched_at timestamptz NOT NULL,
    PRIMARY KEY (target, source)
);
-- Those that retention may take: what was emptied, and what was never written.
CREATE INDEX sources_age ON fencerow.sources (touched_at) WHERE row_count = 0 OR written_number = 0;
