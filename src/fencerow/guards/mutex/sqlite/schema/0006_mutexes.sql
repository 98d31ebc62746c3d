-- compatible_from: 1
-- Mutexes: a row for every key that was ever taken, free or held. It stays after a release, so that its token never
-- goes back.
CREATE TABLE fencerow.mutexes (
    key TEXT PRIMARY KEY NOT NULL,
    token INTEGER NOT NULL,
    holder TEXT,
    stale_s REAL NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    job_id TEXT,
    attempt INTEGER,
    job_name TEXT,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    purpose TEXT,
    freed_at INTEGER,
    freed_by TEXT,
    freed_reason TEXT,
    CHECK ((job_id IS NULL) = (attempt IS NULL)),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(key), typeof(holder), typeof(job_id), typeof(job_name),
        typeof(host), typeof(purpose), typeof(freed_by), typeof(freed_reason)))
) WITHOUT ROWID;

-- How often a job has put itself back because of one busy mutex.
CREATE TABLE fencerow.mutex_deferrals (
    job_id TEXT NOT NULL,
    key TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    deferrals INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (job_id, key),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(key)))
) WITHOUT ROWID;
CREATE INDEX fencerow.mutex_deferrals_age ON fencerow.mutex_deferrals (at);

-- The highest token among the mutexes that were forgotten after long disuse: a key that is taken anew begins above it, so
-- that its token never goes back.
CREATE TABLE fencerow.mutex_floor (
    one INTEGER PRIMARY KEY CHECK (one = 1),     -- one row at most
    token INTEGER NOT NULL
);
