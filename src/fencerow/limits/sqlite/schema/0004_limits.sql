-- compatible_from: 1
-- Limits: what is said of each, and what is remembered of each and of each of its keys.
CREATE TABLE fencerow.limits (
    name TEXT PRIMARY KEY NOT NULL,
    definition TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 1,
    version INTEGER NOT NULL DEFAULT 0,
    declared TEXT,
    set_at INTEGER NOT NULL,
    set_by TEXT,
    reason TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(definition), typeof(declared),
        typeof(set_by), typeof(reason)))
) WITHOUT ROWID;

CREATE TABLE fencerow.limit_states (
    name TEXT PRIMARY KEY NOT NULL,
    state TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(state)))
) WITHOUT ROWID;

-- Which limits have a breaker. Whoever ends an attempt in a failure looks here whether anybody wants to be told.
CREATE TABLE fencerow.watched_limits (
    name TEXT PRIMARY KEY NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name)))
) WITHOUT ROWID;

-- A failure under such a limit, until somebody takes it.
CREATE TABLE fencerow.limit_failures (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    started_at INTEGER,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name)))
);
CREATE INDEX fencerow.limit_failures_name ON fencerow.limit_failures (name);
