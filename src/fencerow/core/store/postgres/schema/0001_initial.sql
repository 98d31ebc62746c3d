-- compatible_from: 1
-- The job tables of Fencerow on PostgreSQL. No extension and no superuser is needed; everything lives in one schema.
-- Live jobs and finished jobs are two tables with the same columns in the same order, so that the
-- live one and its indexes stay small and a job moves by DELETE ... RETURNING * into INSERT.

-- The one clock that decides ownership. clock_timestamp(), not now(): a long transaction must not stop it.
-- It is volatile, so statements write (SELECT fencerow.now()) to make it an index condition. Tests replace it.
CREATE FUNCTION fencerow.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- Instants travel as whole microseconds since 1970.
CREATE FUNCTION fencerow.us(instant timestamptz) RETURNS bigint LANGUAGE sql STABLE
    AS 'SELECT CAST(extract(epoch FROM instant) * 1000000 AS bigint)';
CREATE FUNCTION fencerow.at(us bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE
    AS 'SELECT TIMESTAMPTZ ''1970-01-01 00:00:00+00'' + us * INTERVAL ''1 microsecond''';
CREATE FUNCTION fencerow.seconds(s double precision) RETURNS interval LANGUAGE sql IMMUTABLE
    AS 'SELECT s * INTERVAL ''1 second''';
-- IMMUTABLE is true here although timestamptz + interval is not in general: seconds know no time zone.
CREATE FUNCTION fencerow.later(instant timestamptz, s double precision) RETURNS timestamptz LANGUAGE sql IMMUTABLE
    AS 'SELECT instant + s * INTERVAL ''1 second''';

CREATE TABLE fencerow.jobs (
    id uuid PRIMARY KEY,
    queue text NOT NULL,
    name text NOT NULL,
    state text NOT NULL DEFAULT 'queued'
        CHECK (state IN ('waiting', 'queued', 'running', 'succeeded', 'failed', 'cancelled')),
    priority smallint NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    suspect boolean NOT NULL DEFAULT false,      -- a holder died while it ran: it runs as the only suspect there
    awaited boolean NOT NULL DEFAULT false,      -- somebody waits for the result: announce the end
    run_at timestamptz NOT NULL,
    attempt bigint NOT NULL DEFAULT 0,           -- the fence, with holder: only a claim raises it, nothing lowers it
    failures integer NOT NULL DEFAULT 0,         -- spent of attempts_max since the last revive
    crashes integer NOT NULL DEFAULT 0,          -- spent of crashes_max
    snoozes integer NOT NULL DEFAULT 0,          -- spent of snoozes_max
    attempts_max integer NOT NULL,
    crashes_max integer NOT NULL,
    snoozes_max integer NOT NULL,
    timeout_s double precision,
    holder uuid,                                 -- the worker registration that claimed it
    claimed_at timestamptz,
    deadline_at timestamptz,                     -- past it the reaper ends the attempt although its holder lives
    cancel_requested_at timestamptz,
    cancel_requested_by text,
    expires_at timestamptz,                      -- nobody waits for it any more after this
    retention_s double precision,                -- how long to keep it once finished; NULL: the app's setting
    scope text,
    key text,
    submitted_at timestamptz NOT NULL,
    submitted_by text,
    revived_at timestamptz,
    ended_at timestamptz,
    args_bytes integer NOT NULL,
    args json NOT NULL,                          -- json, not jsonb: these are the bytes that were submitted
    options json,                                -- per-submit overrides of the retry rule
    tags json,
    metadata json,
    headers json,
    result json,
    error json,
    CHECK ((state = 'running') = (holder IS NOT NULL) OR ended_at IS NOT NULL),
    CHECK ((scope IS NULL) = (key IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The lane: what a claim walks. Running, waiting and suspect jobs are not in it.
CREATE INDEX jobs_lane ON fencerow.jobs (queue, priority DESC, run_at, id) WHERE state = 'queued' AND NOT suspect;
CREATE INDEX jobs_suspect ON fencerow.jobs (queue, run_at, id) WHERE state = 'queued' AND suspect;
CREATE INDEX jobs_holder ON fencerow.jobs (holder) WHERE state = 'running';
CREATE INDEX jobs_deadline ON fencerow.jobs (deadline_at) WHERE state = 'running' AND deadline_at IS NOT NULL;
CREATE INDEX jobs_expiry ON fencerow.jobs (expires_at) WHERE state IN ('waiting', 'queued') AND expires_at IS NOT NULL;
CREATE INDEX jobs_key ON fencerow.jobs (scope, key) WHERE key IS NOT NULL;

-- Append-only but for revive and retention. It is filled by SELECT * from the live table: a migration that
-- adds a column adds it to both.
CREATE TABLE fencerow.finished_jobs (LIKE fencerow.jobs INCLUDING DEFAULTS);
ALTER TABLE fencerow.finished_jobs
    ADD PRIMARY KEY (id),
    ADD CHECK (state IN ('succeeded', 'failed', 'cancelled') AND ended_at IS NOT NULL);
CREATE INDEX finished_jobs_age ON fencerow.finished_jobs (state, ended_at);
CREATE INDEX finished_jobs_retention ON fencerow.finished_jobs (fencerow.later(ended_at, retention_s))
    WHERE retention_s IS NOT NULL;
CREATE INDEX finished_jobs_key ON fencerow.finished_jobs (scope, key) WHERE key IS NOT NULL;

-- A job is looked up here, in one statement over both: two statements could see neither during a revive.
CREATE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;

-- One row per idempotency key. It outlives its job: expires_at is set when the job ends.
CREATE TABLE fencerow.keys (
    scope text NOT NULL,
    key text NOT NULL,
    job_id uuid NOT NULL,
    fingerprint text NOT NULL,
    lifetime_s double precision NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (scope, key)
);
CREATE INDEX keys_job ON fencerow.keys (job_id);
CREATE INDEX keys_expiry ON fencerow.keys (expires_at) WHERE expires_at IS NOT NULL;

-- What the columns of a job cannot tell: the exceptions of its life, one row each.
CREATE TABLE fencerow.job_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    actor text,
    detail json
);
CREATE INDEX job_events_job ON fencerow.job_events (job_id, id);

CREATE TABLE fencerow.job_logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    at timestamptz NOT NULL,
    level text NOT NULL,
    message text NOT NULL
);
CREATE INDEX job_logs_job ON fencerow.job_logs (job_id, id);

CREATE TABLE fencerow.job_progress (
    job_id uuid PRIMARY KEY,
    attempt bigint NOT NULL,
    percent double precision NOT NULL,
    note text,
    at timestamptz NOT NULL
);

-- One row per worker registration. Its lease is the lease of every job it holds.
CREATE TABLE fencerow.workers (
    id uuid PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('alive', 'retired', 'dead')),
    name text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    info json,                                   -- queues, slots, job names, versions
    lease_s double precision NOT NULL,
    registered_at timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE INDEX workers_lease ON fencerow.workers (lease_until) WHERE state = 'alive';

-- Only queues about which somebody said something have a row.
CREATE TABLE fencerow.queues (
    name text PRIMARY KEY,
    paused_at timestamptz,
    paused_by text,
    reason text
);
