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
    reason TEXT
) WITHOUT ROWID;

CREATE TABLE fencerow.limit_states (
    name TEXT PRIMARY KEY NOT NULL,
    state TEXT NOT NULL,
    changed_at INTEGER NOT NULL
) WITHOUT ROWID;

-- A claim that knows nothing of limits finds nothing in a queue of which this is true. The queue without a name stands
-- for all queues.
ALTER TABLE fencerow.queues ADD COLUMN limited INTEGER NOT NULL DEFAULT 0;
