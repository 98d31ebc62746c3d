-- compatible_from: 1
-- Durable steps: what jobs remember of their runs, what they wait for, and the signals that were sent to them.

CREATE TABLE fencerow.job_steps (
    job_id TEXT NOT NULL,
    name TEXT NOT NULL CHECK (length(name) <= 220),
    kind TEXT NOT NULL CHECK (kind IN ('step', 'sleep', 'signal', 'patch')),
    seq INTEGER NOT NULL CHECK (seq BETWEEN 1 AND 1000000),
    beside INTEGER NOT NULL DEFAULT 0,
    result TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    took_s REAL,
    PRIMARY KEY (job_id, name),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(name), typeof(kind), typeof(result)))
) WITHOUT ROWID;

CREATE TABLE fencerow.job_waits (
    job_id TEXT NOT NULL,
    name TEXT NOT NULL CHECK (length(name) <= 220),
    attempt INTEGER NOT NULL,
    signal TEXT,
    until INTEGER,
    look_at INTEGER,
    since INTEGER NOT NULL,
    PRIMARY KEY (job_id, name),
    CHECK (signal IS NOT NULL OR until IS NOT NULL),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(name), typeof(signal)))
) WITHOUT ROWID;
CREATE INDEX fencerow.job_waits_due ON fencerow.job_waits (look_at) WHERE look_at IS NOT NULL;

CREATE TABLE fencerow.job_signals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    job_id TEXT NOT NULL,
    name TEXT NOT NULL CHECK (length(name) <= 100),
    data TEXT NOT NULL,
    sent_by TEXT,
    sent_at INTEGER NOT NULL,
    taken_as TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(job_id), typeof(name), typeof(data), typeof(sent_by),
        typeof(taken_as)))
);
CREATE INDEX fencerow.job_signals_job ON fencerow.job_signals (job_id, name, seq);

CREATE TABLE fencerow.job_approvals (
    id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    signal TEXT NOT NULL CHECK (length(signal) <= 100),
    asks TEXT NOT NULL,
    digest TEXT NOT NULL,
    made_by TEXT,
    made_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    answered_at INTEGER,
    answer INTEGER,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(job_id), typeof(signal), typeof(asks), typeof(digest),
        typeof(made_by)))
) WITHOUT ROWID;
CREATE INDEX fencerow.job_approvals_job ON fencerow.job_approvals (job_id, signal);
CREATE INDEX fencerow.job_approvals_open ON fencerow.job_approvals (expires_at, id) WHERE answered_at IS NULL;
