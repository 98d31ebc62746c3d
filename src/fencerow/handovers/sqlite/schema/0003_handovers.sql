-- compatible_from: 1
-- Handovers: the ends of jobs, handed to a receiver in the order of the submits and kept until they are confirmed.

CREATE TABLE fencerow.handovers (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL UNIQUE,
    receiver TEXT NOT NULL,
    key TEXT NOT NULL,
    hold_s REAL NOT NULL CHECK (hold_s BETWEEN 0 AND 1e9),
    name TEXT NOT NULL,
    lined_at INTEGER NOT NULL,
    state TEXT CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    attempt INTEGER,
    result TEXT,
    error TEXT,
    ended_at INTEGER,
    held_until INTEGER,
    token INTEGER NOT NULL DEFAULT 0 CHECK (token BETWEEN 0 AND 1000000000000000000),
    holder TEXT,
    taken_by TEXT,
    taken_at INTEGER,
    lease_s REAL,
    free_at INTEGER,
    confirmed_at INTEGER,
    confirmed_by TEXT,
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CHECK (confirmed_at IS NULL OR state IS NOT NULL),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(receiver), typeof(key), typeof(name),
        typeof(result), typeof(error), typeof(holder), typeof(taken_by), typeof(confirmed_by)))
);
CREATE INDEX fencerow.handovers_line ON fencerow.handovers (receiver, key, place) WHERE confirmed_at IS NULL;
CREATE INDEX fencerow.handovers_ended ON fencerow.handovers (receiver, key)
    WHERE confirmed_at IS NULL AND state IS NOT NULL;
CREATE INDEX fencerow.handovers_held ON fencerow.handovers (receiver, held_until)
    WHERE confirmed_at IS NULL AND state IS NOT NULL;
CREATE INDEX fencerow.handovers_taken ON fencerow.handovers (receiver, free_at)
    WHERE confirmed_at IS NULL AND state IS NOT NULL AND free_at IS NOT NULL;
-- Whether any end is still to come: what ends a job asks before it looks further.
CREATE INDEX fencerow.handovers_open ON fencerow.handovers (job_id) WHERE state IS NULL;
