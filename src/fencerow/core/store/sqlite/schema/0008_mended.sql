-- compatible_from: 1
-- What the first versions let in, or could not survive. Nothing of it concerns a file: SQLite has no roles, stores no
-- number that is none, and cannot add a constraint to a table that is there; what is read is survived (store/decoding.py).

-- === Guards: which run of its owner has a key or a source ====================================================

-- A later attempt of the same owner takes over what an earlier one has left; the same attempt does not. NULL: the
-- owner numbers no attempts, and nobody takes over before the lease ends.
ALTER TABLE fencerow.once_keys ADD COLUMN attempt INTEGER;
ALTER TABLE fencerow.sources ADD COLUMN attempt INTEGER;

-- Which attempt of a job has claimed a row of a user's table, under which fence: the job's next attempt may claim it
-- while the fence is that one.
CREATE TABLE fencerow.row_leases (
    target TEXT NOT NULL,
    sub TEXT NOT NULL,
    row_id TEXT NOT NULL,
    fence INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (target, sub, row_id),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(target), typeof(sub), typeof(row_id), typeof(job_id)))
) WITHOUT ROWID;
CREATE INDEX fencerow.row_leases_job ON fencerow.row_leases (job_id);
CREATE INDEX fencerow.row_leases_expiry ON fencerow.row_leases (until);

-- --- Ids that were submitted again -----------------------------------------------------------------------------------
-- A submit whose answer was lost is repeated; a first statement that comes after its repeat finds the id here and is
-- refused. Rows go by age.
CREATE TABLE fencerow.repeated_ids (
    id TEXT PRIMARY KEY NOT NULL,
    at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id)))
) WITHOUT ROWID;
CREATE INDEX fencerow.repeated_ids_age ON fencerow.repeated_ids (at);

-- --- Jobs that have ended and could not be moved ------------------------------------------------------------------
-- Maintenance looks for them and moves them when the database lets it. There are none, as a rule.
CREATE INDEX fencerow.jobs_parked ON fencerow.jobs (ended_at)
    WHERE state IN ('succeeded', 'failed', 'cancelled') AND ended_at IS NOT NULL;
-- The highest token among the mutexes that were forgotten after long disuse: a key that is taken anew begins above it, so
-- that its token never goes back.
CREATE TABLE fencerow.mutex_floor (
    one INTEGER PRIMARY KEY CHECK (one = 1),     -- one row at most
    token INTEGER NOT NULL
);
