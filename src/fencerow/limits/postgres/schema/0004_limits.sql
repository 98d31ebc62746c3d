-- compatible_from: 1
-- Limits: what is said of each, and what is remembered of each and of each of its keys.

CREATE TABLE fencerow.limits (
    name text PRIMARY KEY,
    definition text NOT NULL,                    -- JSON: at_once, rate, hours, breaker
    revision bigint NOT NULL DEFAULT 1,          -- raised by each change: of two at once one wins
    version bigint NOT NULL DEFAULT 0,           -- of the newest declaration in code; 0: none was seen
    declared text,                               -- what that declaration said
    set_at timestamptz NOT NULL,
    set_by text,
    reason text
);

-- One row is locked for each start under a limit, so that two starts never count the same.
CREATE TABLE fencerow.limit_states (
    name text PRIMARY KEY,                       -- of the limit; or with a key behind a slash
    state text NOT NULL,                         -- JSON: the rate's and the breaker's memory
    changed_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Which limits have a breaker. Whoever ends an attempt in a failure looks here whether anybody wants to be told.
CREATE TABLE fencerow.watched_limits (
    name text PRIMARY KEY
);

-- A failure under such a limit, until somebody who has locked the limit takes it. Inserting takes no lock.
CREATE TABLE fencerow.limit_failures (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,                          -- of the limit; or with a key behind a slash
    at timestamptz NOT NULL,
    started_at timestamptz,                      -- when the attempt had: of before a breaker opened, it tells nothing
    PRIMARY KEY (name, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
