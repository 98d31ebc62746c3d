-- compatible_from: 1
-- The job tables of Fencerow in a SQLite file. Instants are whole microseconds since 1970, ids are UUID text,
-- booleans 0 and 1. Our functions (fencerow_now) stand in statements only, never in the schema: a trigger or a
-- default that used one would break every other tool that opens the file.
-- SQLite keeps bytes in a column of texts, and no JSON can hold them: one such row would stop every look at all rows. Hence
-- text_not_bytes in each table.
-- No IN of three values and more in the constraints and indexes of jobs: SQLite makes a table of them for every row that it
-- writes.

CREATE TABLE fencerow.jobs (
    id TEXT PRIMARY KEY NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued'
        CHECK (state = 'waiting' OR state = 'queued' OR state = 'running'
               OR state = 'succeeded' OR state = 'failed' OR state = 'cancelled'),
    priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    suspect INTEGER NOT NULL DEFAULT 0,
    awaited INTEGER NOT NULL DEFAULT 0,
    subscribed INTEGER NOT NULL DEFAULT 0,
    ephemeral INTEGER NOT NULL DEFAULT 0,
    strict INTEGER NOT NULL DEFAULT 0,
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
    exclusive TEXT,
    exclusive_at_once INTEGER,
    limits TEXT,
    gate TEXT,
    turned_at INTEGER,
    share TEXT,
    affinity TEXT,
    affinity_wait_s REAL,
    fell_back_for INTEGER NOT NULL DEFAULT 0,
    submitted_at INTEGER NOT NULL,
    submitted_by TEXT,
    revived_at INTEGER,
    ended_at INTEGER,
    period INTEGER NOT NULL DEFAULT 0,          -- one table holds all finished jobs here
    args_bytes INTEGER NOT NULL,
    args TEXT NOT NULL,
    options TEXT,
    tags TEXT,
    metadata TEXT,
    headers TEXT,
    result TEXT,
    error TEXT,
    lane TEXT NOT NULL GENERATED ALWAYS AS (
        CASE WHEN suspect THEN 'suspect:' ELSE '' END
        || CASE WHEN affinity IS NOT NULL AND fell_back_for <= attempt THEN 'label:' || affinity
                WHEN share IS NOT NULL AND NOT suspect THEN 'share:' || share
                ELSE '' END
    ) STORED,
    CHECK ((state = 'running') = (holder IS NOT NULL) OR ended_at IS NOT NULL),
    CHECK ((scope IS NULL) = (key IS NULL)),
    -- Ends and looks at limits take the names of many jobs apart: what is no list would stop them all.
    CHECK (limits IS NULL OR CASE WHEN typeof(limits) = 'text' AND json_valid(limits) THEN json_type(limits) = 'array' ELSE 0 END),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(queue), typeof(name), typeof(holder),
        typeof(cancel_requested_by), typeof(scope), typeof(key), typeof(exclusive), typeof(limits), typeof(gate),
        typeof(share), typeof(affinity), typeof(submitted_by), typeof(args), typeof(options), typeof(tags),
        typeof(metadata), typeof(headers), typeof(result), typeof(error)))
);
CREATE INDEX fencerow.jobs_lane ON fencerow.jobs (queue, priority DESC, lane, run_at, id) WHERE state = 'queued';
CREATE INDEX fencerow.jobs_fallback ON fencerow.jobs (run_at + CAST(affinity_wait_s * 1000000 AS INTEGER))
    WHERE state = 'queued' AND affinity_wait_s IS NOT NULL AND affinity IS NOT NULL AND fell_back_for <= attempt;
CREATE INDEX fencerow.jobs_gate ON fencerow.jobs (gate, queue, priority, run_at, id)
    WHERE state = 'waiting' AND gate IS NOT NULL;
CREATE INDEX fencerow.jobs_turned ON fencerow.jobs (exclusive, exclusive_at_once)
    WHERE state IN ('queued', 'running') AND exclusive IS NOT NULL;
CREATE INDEX fencerow.jobs_limited ON fencerow.jobs (limits)
    WHERE state IN ('queued', 'running') AND limits IS NOT NULL;
-- Whether any job needs turns at all, wants its end to be an event, or is ephemeral: what ends ask before they look further.
CREATE INDEX fencerow.jobs_gated ON fencerow.jobs (id) WHERE exclusive IS NOT NULL OR limits IS NOT NULL;
CREATE INDEX fencerow.jobs_subscribed ON fencerow.jobs (subscribed) WHERE subscribed = 1;
CREATE INDEX fencerow.jobs_ephemeral ON fencerow.jobs (ephemeral) WHERE ephemeral = 1;
CREATE INDEX fencerow.jobs_holder ON fencerow.jobs (holder) WHERE state = 'running';
CREATE INDEX fencerow.jobs_expiry ON fencerow.jobs (expires_at) WHERE state IN ('waiting', 'queued') AND expires_at IS NOT NULL;
CREATE INDEX fencerow.jobs_key ON fencerow.jobs (scope, key) WHERE key IS NOT NULL;
-- Jobs that have ended and could not be moved. Maintenance looks for them and moves them when the database lets it.
CREATE INDEX fencerow.jobs_unmoved ON fencerow.jobs (ended_at)
    WHERE ended_at IS NOT NULL;
-- Jobs that are found by their tags and metadata: those that carry any, the newest id first.
CREATE INDEX fencerow.jobs_labelled ON fencerow.jobs (id) WHERE tags IS NOT NULL OR metadata IS NOT NULL;

-- The same columns in the same order, but for the lane: who has ended stands in none.
CREATE TABLE fencerow.finished_jobs (
    id TEXT PRIMARY KEY NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state = 'succeeded' OR state = 'failed' OR state = 'cancelled'),
    priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    suspect INTEGER NOT NULL DEFAULT 0,
    awaited INTEGER NOT NULL DEFAULT 0,
    subscribed INTEGER NOT NULL DEFAULT 0,
    ephemeral INTEGER NOT NULL DEFAULT 0,
    strict INTEGER NOT NULL DEFAULT 0,
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
    exclusive TEXT,
    exclusive_at_once INTEGER,
    limits TEXT,
    gate TEXT,
    turned_at INTEGER,
    share TEXT,
    affinity TEXT,
    affinity_wait_s REAL,
    fell_back_for INTEGER NOT NULL DEFAULT 0,
    submitted_at INTEGER NOT NULL,
    submitted_by TEXT,
    revived_at INTEGER,
    ended_at INTEGER NOT NULL,
    period INTEGER NOT NULL DEFAULT 0,
    args_bytes INTEGER NOT NULL,
    args TEXT NOT NULL,
    options TEXT,
    tags TEXT,
    metadata TEXT,
    headers TEXT,
    result TEXT,
    error TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(queue), typeof(name), typeof(holder),
        typeof(cancel_requested_by), typeof(scope), typeof(key), typeof(exclusive), typeof(limits), typeof(gate),
        typeof(share), typeof(affinity), typeof(submitted_by), typeof(args), typeof(options), typeof(tags),
        typeof(metadata), typeof(headers), typeof(result), typeof(error)))
);
CREATE INDEX fencerow.finished_jobs_age ON fencerow.finished_jobs (state, ended_at);
CREATE INDEX fencerow.finished_jobs_retention ON fencerow.finished_jobs (ended_at + retention_s * 1000000)
    WHERE retention_s IS NOT NULL;
CREATE INDEX fencerow.finished_jobs_key ON fencerow.finished_jobs (scope, key) WHERE key IS NOT NULL;
CREATE INDEX fencerow.finished_jobs_labelled ON fencerow.finished_jobs (id)
    WHERE tags IS NOT NULL OR metadata IS NOT NULL;

CREATE VIEW fencerow.all_jobs AS
    SELECT * FROM fencerow.jobs UNION ALL SELECT *, CAST('' AS TEXT) FROM fencerow.finished_jobs;

-- The ids of ephemeral jobs that succeeded, which leave nothing else: a submit that is repeated after a lost answer finds
-- its job here.
CREATE TABLE fencerow.spent_ids (
    id TEXT PRIMARY KEY NOT NULL,
    attempt INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id)))
) WITHOUT ROWID;
CREATE INDEX fencerow.spent_ids_age ON fencerow.spent_ids (ended_at);

-- A submit whose answer was lost is repeated; a first statement that comes after its repeat finds the id here and is
-- refused. Rows go by age.
CREATE TABLE fencerow.repeated_ids (
    id TEXT PRIMARY KEY NOT NULL,
    at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id)))
) WITHOUT ROWID;
CREATE INDEX fencerow.repeated_ids_age ON fencerow.repeated_ids (at);

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

CREATE TABLE fencerow.shares (
    queue TEXT NOT NULL,
    share TEXT NOT NULL,
    weight INTEGER NOT NULL CHECK (weight BETWEEN 1 AND 1000),
    set_at INTEGER NOT NULL,
    set_by TEXT,
    PRIMARY KEY (queue, share),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(queue), typeof(share), typeof(set_by)))
) WITHOUT ROWID;

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

-- The workers live in a file of their own, see ensure_workers.

-- Only queues about which somebody said something have a row.
CREATE TABLE fencerow.queues (
    name TEXT PRIMARY KEY NOT NULL,
    paused_at INTEGER,
    paused_by TEXT,
    reason TEXT,
    -- A claim that knows nothing of limits finds nothing in a queue of which this is true. The queue without a name stands
    -- for all queues.
    limited INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(paused_by), typeof(reason)))
);
