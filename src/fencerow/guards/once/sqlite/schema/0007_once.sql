-- compatible_from: 1
-- What was done once, what a window has seen, and what is written of a source whose rows are replaced.

-- A key is taken before its effect. The token is made anew for each taking, so that whoever lost the key can
-- neither end nor free what another has taken since. expires_at counts from the end, or from the end of the lease
-- of one that nobody ended.
-- A later attempt of the same owner takes over what an earlier one has left; the same attempt does not.
CREATE TABLE fencerow.once_keys (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    owner TEXT NOT NULL,
    attempt INTEGER,
    token TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    reserved_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    done_at INTEGER,
    expires_at INTEGER NOT NULL,
    result TEXT,
    PRIMARY KEY (scope, key),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(scope), typeof(key), typeof(owner), typeof(token),
        typeof(fingerprint), typeof(result)))
) WITHOUT ROWID;
CREATE INDEX fencerow.once_keys_expiry ON fencerow.once_keys (expires_at);

-- The first one of a window, with the value that later ones get.
CREATE TABLE fencerow.dedupe_windows (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    token TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (name, key),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(key), typeof(value), typeof(token)))
) WITHOUT ROWID;
CREATE INDEX fencerow.dedupe_windows_expiry ON fencerow.dedupe_windows (until);

-- One row for each source in a user's table: which version and content stands there, and who computes the next.
CREATE TABLE fencerow.sources (
    target TEXT NOT NULL,
    source TEXT NOT NULL,
    number INTEGER NOT NULL,
    version INTEGER,
    content_hash TEXT,
    written_number INTEGER NOT NULL DEFAULT 0,
    written_by TEXT,
    row_count INTEGER,
    owner TEXT,
    attempt INTEGER,
    token TEXT,
    reserved_version INTEGER,
    reserved_hash TEXT,
    until INTEGER,
    touched_at INTEGER NOT NULL,
    PRIMARY KEY (target, source),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(target), typeof(source), typeof(content_hash),
        typeof(written_by), typeof(owner), typeof(token), typeof(reserved_hash)))
) WITHOUT ROWID;
-- Those that retention may take: what was emptied, and what was never written.
CREATE INDEX fencerow.sources_age ON fencerow.sources (touched_at) WHERE row_count = 0 OR written_number = 0;
