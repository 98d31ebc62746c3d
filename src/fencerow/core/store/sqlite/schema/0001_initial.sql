-- compatible_from: 1
-- The job tables of Fencerow in a SQLite file. Instants are whole microseconds since 1970, ids are UUID text,
-- booleans 0 and 1. Our functions (fencerow_now) stand in statements only, never in the schema: a trigger or a
-- default that used one would break every other tool that opens the file.
-- SQLite keeps bytes in a column of texts, and no JSON can hold them: one such row would stop every look at all rows. Hence
-- text_not_bytes in each table.

CREATE TABLE fencerow.jobs (
    id TEXT PRIMARY KEY NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued'
        CHECK (state IN ('waiting', 'queued', 'running', 'succeeded', 'failed', 'cancelled')),
    priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    suspect INTEGER NOT NULL DEFAULT 0,
    awaited INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    attempts_max INTEGER NOT NULL,
    crashes_max INTEGER NOT NULL,
    snoozes_max INTEGER NOT NULL,
    timeout_s REAL,
    holder TEXT,
    claimed_at INTEGER,
    deadline_at INTEGER,
    cancel_requested_at INTEGER,
    cancel_requested_by TEXT,
    expires_at INTEGER,
    retention_s REAL,
    scope TEXT,
    key TEXT,
    submitted_at INTEGER NOT NULL,
    submitted_by TEXT,
    revived_at INTEGER,
    ended_at INTEGER,
    args_bytes INTEGER NOT NULL,
    args TEXT NOT NULL,
    options TEXT,
    tags TEXT,
    metadata TEXT,
    headers TEXT,
    result TEXT,
    error TEXT,
    CHECK ((state = 'running') = (holder IS NOT NULL) OR ended_at IS NOT NULL),
    CHECK ((scope IS NULL) = (key IS NULL)),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(queue), typeof(name), typeof(holder),
        typeof(cancel_requested_by), typeof(scope), typeof(key), typeof(submitted_by), typeof(args), typeof(options),
        typeof(tags), typeof(metadata), typeof(headers), typeof(result), typeof(error)))
);
CREATE INDEX fencerow.jobs_lane ON fencerow.jobs (queue, priority DESC, run_at, id) WHERE state = 'queued' AND suspect = 0;
CREATE INDEX fencerow.jobs_suspect ON fencerow.jobs (queue, run_at, id) WHERE state = 'queued' AND suspect = 1;
CREATE INDEX fencerow.jobs_holder ON fencerow.jobs (holder) WHERE state = 'running';
CREATE INDEX fencerow.jobs_deadline ON fencerow.jobs (deadline_at) WHERE state = 'running' AND deadline_at IS NOT NULL;
CREATE INDEX fencerow.jobs_expiry ON fencerow.jobs (expires_at) WHERE state IN ('waiting', 'queued') AND expires_at IS NOT NULL;
CREATE INDEX fencerow.jobs_key ON fencerow.jobs (scope, key) WHERE key IS NOT NULL;

-- The same columns in the same order: archive fills it by SELECT * from the live table.
CREATE TABLE fencerow.finished_jobs (
    id TEXT PRIMARY KEY NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    suspect INTEGER NOT NULL DEFAULT 0,
    awaited INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    attempts_max INTEGER NOT NULL,
    crashes_max INTEGER NOT NULL,
    snoozes_max INTEGER NOT NULL,
    timeout_s REAL,
    holder TEXT,
    claimed_at INTEGER,
    deadline_at INTEGER,
    cancel_requested_at INTEGER,
    cancel_requested_by TEXT,
    expires_at INTEGER,
    retention_s REAL,
    scope TEXT,
    key TEXT,
    submitted_at INTEGER NOT NULL,
    submitted_by TEXT,
    revived_at INTEGER,
    ended_at INTEGER NOT NULL,
    args_bytes INTEGER NOT NULL,
    args TEXT NOT NULL,
    options TEXT,
    tags TEXT,
    metadata TEXT,
    headers TEXT,
    result TEXT,
    error TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(queue), typeof(name), typeof(holder),
        typeof(cancel_requested_by), typeof(scope), typeof(key), typeof(submitted_by), typeof(args), typeof(options),
        typeof(tags), typeof(metadata), typeof(headers), typeof(result), typeof(error)))
);
CREATE INDEX fencerow.finished_jobs_age ON fencerow.finished_jobs (state, ended_at);
CREATE INDEX fencerow.finished_jobs_retention ON fencerow.finished_jobs (ended_at + retention_s * 1000000)
    WHERE retention_s IS NOT NULL;
CREATE INDEX fencerow.finished_jobs_key ON fencerow.finished_jobs (scope, key) WHERE key IS NOT NULL;

CREATE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;

CREATE TABLE fencerow.keys (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    lifetime_s REAL NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (scope, key),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(scope), typeof(key), typeof(job_id), typeof(fingerprint)))
) WITHOUT ROWID;
CREATE INDEX fencerow.keys_job ON fencerow.keys (job_id);
CREATE INDEX fencerow.keys_expiry ON fencerow.keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE fencerow.job_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT,
    detail TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(kind), typeof(actor), typeof(detail)))
);
CREATE INDEX fencerow.job_events_job ON fencerow.job_events (job_id, id);

CREATE TABLE fencerow.job_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    level TEXT NOT NULL,
    message TEXT NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(level), typeof(message)))
);
CREATE INDEX fencerow.job_logs_job ON fencerow.job_logs (job_id, id);

CREATE TABLE fencerow.job_progress (
    job_id TEXT PRIMARY KEY NOT NULL,
    attempt INTEGER NOT NULL,
    percent REAL NOT NULL,
    note TEXT,
    at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(note)))
);

CREATE TABLE fencerow.queues (
    name TEXT PRIMARY KEY NOT NULL,
    paused_at INTEGER,
    paused_by TEXT,
    reason TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(paused_by), typeof(reason)))
);
