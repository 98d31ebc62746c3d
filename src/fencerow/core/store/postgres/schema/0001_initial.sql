-- compatible_from: 1
-- The job tables of Fencerow on PostgreSQL. No extension and no superuser is needed; everything lives in one schema.
-- Live jobs and finished jobs are two tables with the same columns in the same order, so that the
-- live one and its indexes stay small and a job moves by DELETE ... RETURNING * into INSERT.

-- The one clock that decides ownership. clock_timestamp(), not now(): a long transaction must not stop it.
-- It is volatile, so statements write (SELECT fencerow.now()) to make it an index condition. Tests replace it.
CREATE FUNCTION fencerow.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- The conversions have an answer for every value, so that no stored row makes a statement fail, whoever wrote it.

-- Instants travel as whole microseconds since 1970. Those beyond what is counted so travel as its ends, and come back
-- as the infinities, which lie behind and before every instant.
CREATE FUNCTION fencerow.us(instant timestamptz) RETURNS bigint LANGUAGE sql STABLE
    AS 'SELECT CASE WHEN instant = TIMESTAMPTZ ''-infinity'' THEN -300000000000000000
                    WHEN instant >= TIMESTAMPTZ ''200000-01-01 00:00:00+00'' THEN 6000000000000000000
                    ELSE CAST(extract(epoch FROM instant) * 1000000 AS bigint) END';
-- Immutable in truth, but timestamptz + interval is not said to be: with that word the planner would not write the body
-- into a statement, and the server would parse and plan it at each call, which cost a claim a quarter.
CREATE FUNCTION fencerow.at(us bigint) RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT CASE WHEN us <= -210000000000000000 THEN TIMESTAMPTZ ''-infinity''
                    WHEN us >= 6000000000000000000 THEN TIMESTAMPTZ ''infinity''
                    ELSE TIMESTAMPTZ ''1970-01-01 00:00:00+00'' + us * INTERVAL ''1 microsecond'' END';
-- No span is longer than 3,000 years; what is no number, or infinite, is that long. NULL stays NULL.
CREATE FUNCTION fencerow.seconds(s double precision) RETURNS interval LANGUAGE sql IMMUTABLE
    AS 'SELECT CASE WHEN s BETWEEN -1e11 AND 1e11 THEN s WHEN s > 0 THEN 1e11 WHEN s < 0 THEN -1e11 END
               * INTERVAL ''1 second''';
-- IMMUTABLE is true here although timestamptz + interval is not in general: seconds know no time zone.
CREATE FUNCTION fencerow.later(instant timestamptz, s double precision) RETURNS timestamptz LANGUAGE sql IMMUTABLE
    AS 'SELECT instant + CASE WHEN s BETWEEN -1e11 AND 1e11 THEN s WHEN s > 0 THEN 1e11 WHEN s < 0 THEN -1e11 END
               * INTERVAL ''1 second''';

-- What a column of a job may hold. Domains, and no CHECK of the table: PostgreSQL reads the text of each CHECK and plans it
-- anew for every statement that inserts or updates, whatever that writes, which was two fifths of what a single submit
-- cost the server. A domain's is planned once for a session, and looked at when a column is given a value. What several
-- columns may hold together is the condition of an index, which is read once for a session, too (`jobs_state`).
--
-- One number that is none, one instant at the end of all time, would stop a statement for everybody. What counts up while
-- a job lives is let in only far below the end of its type.
CREATE DOMAIN fencerow.job_attempt AS bigint CONSTRAINT job_attempt CHECK (VALUE BETWEEN 0 AND 8000000000000000000);
CREATE DOMAIN fencerow.job_count AS integer CONSTRAINT job_count CHECK (VALUE BETWEEN 0 AND 2000000000);
CREATE DOMAIN fencerow.job_budget AS integer CONSTRAINT job_budget CHECK (VALUE BETWEEN 0 AND 1000000000);
CREATE DOMAIN fencerow.job_bytes AS integer CONSTRAINT job_bytes CHECK (VALUE >= 0);
CREATE DOMAIN fencerow.job_priority AS smallint CONSTRAINT job_priority CHECK (VALUE BETWEEN -100 AND 100);
CREATE DOMAIN fencerow.job_at_once AS integer CONSTRAINT job_at_once CHECK (VALUE BETWEEN 1 AND 1000000);
CREATE DOMAIN fencerow.job_timeout AS double precision CONSTRAINT job_timeout CHECK (VALUE BETWEEN 0 AND 1e9);
CREATE DOMAIN fencerow.job_retention AS double precision CONSTRAINT job_retention CHECK (VALUE BETWEEN 0 AND 1e10);
CREATE DOMAIN fencerow.job_wait AS double precision CONSTRAINT job_wait CHECK (VALUE BETWEEN -1e9 AND 1e9);
CREATE DOMAIN fencerow.job_instant AS timestamptz CONSTRAINT job_instant
    CHECK (VALUE BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00');
-- The finished jobs are indexed by these as jsonb, which knows less than json does: no null character and no half
-- of a pair. A job that carries one could never end, nor could those that are moved together with it.
CREATE DOMAIN fencerow.job_labels AS json CONSTRAINT job_labels
    CHECK (VALUE IS NULL OR CAST(VALUE AS jsonb) IS NOT NULL);
-- Many jobs are looked at together when turns are given. So nobody stores limits that cannot be read as a list of names,
-- or a text that no index takes: while a job waits it is in few of them, and it would meet the others with its turn.
-- An explicit cast to a length cuts off what is longer. The lengths are above all that our own code writes.
CREATE DOMAIN fencerow.job_queue AS text CONSTRAINT job_queue CHECK (length(VALUE) <= 200);
CREATE DOMAIN fencerow.job_name AS text CONSTRAINT job_name CHECK (length(VALUE) <= 400);
CREATE DOMAIN fencerow.job_gate AS text CONSTRAINT job_gate CHECK (length(VALUE) <= 420);
CREATE DOMAIN fencerow.job_limits AS text[] CONSTRAINT job_limits CHECK (
    VALUE IS NULL
    OR (COALESCE(array_ndims(VALUE), 0) = 1
        AND array_lower(VALUE, 1) = 1
        AND array_position(VALUE, NULL) IS NULL
        AND cardinality(VALUE) <= 100
        AND CAST(CAST(VALUE AS varchar(400)[]) AS text[]) = VALUE)
);

-- In what state a job may be: one that has ended, one that somebody holds, and any other.
CREATE DOMAIN fencerow.job_state_ended AS text CONSTRAINT job_state_ended
    CHECK (VALUE IN ('waiting', 'queued', 'running', 'succeeded', 'failed', 'cancelled'));
CREATE DOMAIN fencerow.job_state_held AS text CONSTRAINT job_state_held CHECK (VALUE = 'running');
CREATE DOMAIN fencerow.job_state_free AS text CONSTRAINT job_state_free CHECK (VALUE IN ('waiting', 'queued'));
-- What no job may be.
CREATE DOMAIN fencerow.job_contradiction AS boolean CONSTRAINT job_contradiction CHECK (NOT VALUE);

-- The name of a lane, compared by bytes, as Python and SQLite do.
CREATE DOMAIN fencerow.job_lane AS text COLLATE "C";

CREATE TABLE fencerow.jobs (
    id uuid PRIMARY KEY,
    queue fencerow.job_queue NOT NULL,
    name fencerow.job_name NOT NULL,
    state text NOT NULL DEFAULT 'queued',
    priority fencerow.job_priority NOT NULL DEFAULT 0,
    suspect boolean NOT NULL DEFAULT false,      -- a holder died while it ran: it runs as the only suspect there
    awaited boolean NOT NULL DEFAULT false,      -- somebody waits for the result: announce the end
    subscribed boolean NOT NULL DEFAULT false,   -- its end is to be an event
    ephemeral boolean NOT NULL DEFAULT false,    -- its success leaves no finished row
    strict boolean NOT NULL DEFAULT false,       -- it keeps its turn between its attempts
    run_at fencerow.job_instant NOT NULL,
    attempt fencerow.job_attempt NOT NULL DEFAULT 0,   -- the fence, with holder: only a claim raises it, nothing lowers it
    failures fencerow.job_count NOT NULL DEFAULT 0,    -- spent of attempts_max since the last revive
    crashes fencerow.job_count NOT NULL DEFAULT 0,     -- spent of crashes_max
    snoozes fencerow.job_count NOT NULL DEFAULT 0,     -- spent of those that it may have
    attempts_max fencerow.job_budget NOT NULL,
    crashes_max fencerow.job_budget NOT NULL,
    snoozes_max fencerow.job_budget NOT NULL,
    timeout_s fencerow.job_timeout,
    holder uuid,                                 -- the worker registration that claimed it
    claimed_at timestamptz,
    deadline_at timestamptz,                     -- past it the reaper ends the attempt although its holder lives
    cancel_requested_at timestamptz,
    cancel_requested_by text,
    expires_at fencerow.job_instant,             -- nobody waits for it any more after this
    retention_s fencerow.job_retention,          -- how long to keep it once finished; NULL: the app's setting
    scope text,
    key text,
    exclusive fencerow.job_name,                 -- the key of which few run at a time
    exclusive_at_once fencerow.job_at_once,      -- how many; NULL: one
    limits fencerow.job_limits,                  -- the limits in which it must have a turn
    gate fencerow.job_gate,                      -- where it waits for its turn, while it does
    turned_at timestamptz,                       -- when its last turn came
    share fencerow.job_name,                     -- whose it is, where a queue is divided between several
    affinity fencerow.job_name,                  -- the label that a worker must carry to take it
    affinity_wait_s fencerow.job_wait,           -- after which, from when it is due, anybody may; NULL: never
    fell_back_for bigint NOT NULL DEFAULT 0,     -- the attempt for which anybody may: its wait was over
    submitted_at fencerow.job_instant NOT NULL,
    submitted_by text,
    revived_at timestamptz,
    ended_at timestamptz,
    period bigint NOT NULL DEFAULT 0,            -- of a finished job: where it lies
    args_bytes fencerow.job_bytes NOT NULL,
    args json NOT NULL,                          -- json, not jsonb: these are the bytes that were submitted
    options json,                                -- per-submit overrides of the retry rule
    tags fencerow.job_labels,
    metadata fencerow.job_labels,
    headers json,
    result json,
    error json,
    -- Who runs is held, and nobody else. What has ended says when: whoever submits may say that a job waits for its turn, and
    -- no more than that about its state. A guard and no index: a row is either refused by the domains in its condition, or it
    -- is not in it. The server looks at it whenever a row is inserted or one of these columns is changed.
    CONSTRAINT jobs_state EXCLUDE USING btree (id WITH =) WHERE (CAST(
        CASE WHEN ended_at IS NOT NULL THEN CAST(state AS fencerow.job_state_ended)
             WHEN holder IS NOT NULL THEN CAST(state AS fencerow.job_state_held)
             ELSE CAST(state AS fencerow.job_state_free) END IS NULL
        OR CASE WHEN scope IS NULL THEN key IS NOT NULL ELSE key IS NULL END
        AS fencerow.job_contradiction
    ))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The lane in which a job is queued, in its queue and priority, or would be: that of its label until it has fallen back for
-- its next attempt, that of its share, or that of anybody. Suspects have lanes of their own, and take no turns. It is
-- computed, so no statement that queues a job can forget it.
CREATE FUNCTION fencerow.lane(job fencerow.jobs) RETURNS fencerow.job_lane LANGUAGE sql IMMUTABLE
    AS $$SELECT CAST(CASE WHEN job.affinity IS NOT NULL AND job.fell_back_for <= job.attempt
                         THEN CASE WHEN job.suspect THEN 'suspect:label:' ELSE 'label:' END || job.affinity
                         WHEN job.suspect THEN 'suspect:'
                         WHEN job.share IS NOT NULL THEN 'share:' || job.share
                         ELSE '' END AS fencerow.job_lane)$$;
-- The lanes: what a claim walks. Running and waiting jobs are in none. The lane in it is word for word that of the function,
-- whose body the planner writes into each statement: so it finds the index. A whole row cannot stand in an index.
-- It stands here, and not in a generated column: the server keeps what an index computes parsed.
CREATE INDEX jobs_lane ON fencerow.jobs (
    queue, priority DESC,
    CAST(CASE WHEN affinity IS NOT NULL AND fell_back_for <= attempt
              THEN CASE WHEN suspect THEN 'suspect:label:' ELSE 'label:' END || affinity
              WHEN suspect THEN 'suspect:'
              WHEN share IS NOT NULL THEN 'share:' || share
              ELSE '' END AS fencerow.job_lane),
    run_at, id
) WHERE state = 'queued';
-- Who may be taken by anybody, and when.
CREATE INDEX jobs_fallback ON fencerow.jobs (fencerow.later(run_at, affinity_wait_s))
    WHERE state = 'queued' AND affinity_wait_s IS NOT NULL AND affinity IS NOT NULL AND fell_back_for <= attempt;
-- Who waits where, and who has a turn; jobs that need none are in none of these.
CREATE INDEX jobs_gate ON fencerow.jobs (gate, queue, priority, run_at, id)
    WHERE state = 'waiting' AND gate IS NOT NULL;
CREATE INDEX jobs_turned ON fencerow.jobs (exclusive) INCLUDE (exclusive_at_once)
    WHERE state IN ('queued', 'running') AND exclusive IS NOT NULL;
-- By the first limit that it names, by the second, and by those behind it, which hardly any job has: an inverted index costs each
-- move of a job more, and each look at one walks over all that was put there lately.
CREATE INDEX jobs_limited ON fencerow.jobs ((limits[1]))
    WHERE state IN ('queued', 'running') AND limits[1] IS NOT NULL;
CREATE INDEX jobs_limited_beside ON fencerow.jobs ((limits[2]))
    WHERE state IN ('queued', 'running') AND limits[2] IS NOT NULL;
CREATE INDEX jobs_limited_more ON fencerow.jobs USING gin ((limits[3:]))
    WHERE state IN ('queued', 'running') AND limits[3] IS NOT NULL;
CREATE INDEX jobs_holder ON fencerow.jobs (holder) WHERE state = 'running';
CREATE INDEX jobs_expiry ON fencerow.jobs (expires_at) WHERE state IN ('waiting', 'queued') AND expires_at IS NOT NULL;
CREATE INDEX jobs_key ON fencerow.jobs (scope, key) WHERE key IS NOT NULL;
-- Jobs that have ended and could not be moved. Maintenance looks for them and moves them when the database lets it. There
-- are none, as a rule.
CREATE INDEX jobs_unmoved ON fencerow.jobs (ended_at)
    WHERE state IN ('succeeded', 'failed', 'cancelled') AND ended_at IS NOT NULL;

-- Append-only but for revive and retention. It is filled by SELECT * from the live table: a migration that
-- adds a column adds it to both. In partitions: one for each final state and period, so that retention detaches and
-- drops a table instead of deleting rows.
CREATE TABLE fencerow.finished_jobs (
    LIKE fencerow.jobs INCLUDING DEFAULTS,
    CONSTRAINT finished_jobs_check CHECK (state IN ('succeeded', 'failed', 'cancelled') AND ended_at IS NOT NULL)
) PARTITION BY LIST (period);

-- There is no default partition. Period 0 keeps what has a retention of its own, and what ends while no period is open:
-- a job that ends never lacks a place.
CREATE TABLE fencerow.finished_kept PARTITION OF fencerow.finished_jobs (
    CONSTRAINT finished_jobs_pkey PRIMARY KEY (id),
    CONSTRAINT finished_jobs_period CHECK (period = 0)
) FOR VALUES IN (0);
CREATE INDEX finished_jobs_age ON fencerow.finished_kept (state, ended_at);
CREATE INDEX finished_jobs_retention ON fencerow.finished_kept (fencerow.later(ended_at, retention_s))
    WHERE retention_s IS NOT NULL;
CREATE INDEX finished_jobs_key ON fencerow.finished_kept (scope, key) WHERE key IS NOT NULL;

-- Only finished jobs that carry tags or metadata are in these: the others pay nothing, and a live job, whose row is
-- written again by its claim, would pay twice. The live ones that carry any are looked at one by one.
CREATE INDEX finished_jobs_tags ON fencerow.finished_jobs USING gin ((CAST(tags AS jsonb)) jsonb_path_ops)
    WHERE tags IS NOT NULL;
CREATE INDEX finished_jobs_metadata ON fencerow.finished_jobs USING gin ((CAST(metadata AS jsonb)) jsonb_path_ops)
    WHERE metadata IS NOT NULL;

-- A period of one final state: from starts_at to before ends_at its jobs go to the table finished_<state>_<id>.
-- closed_at is the first step of its end: nothing is put there any more. The row goes with the table.
CREATE TABLE fencerow.finished_periods (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    closed_at timestamptz,
    taken_at timestamptz,                        -- who ends it works under this mark, which is taken over when old
    CHECK (starts_at < ends_at)
);

-- A job is looked up here, in one statement over both: two statements could see neither during a revive.
CREATE VIEW fencerow.all_jobs AS
    SELECT *, fencerow.lane(jobs) AS lane FROM fencerow.jobs
    UNION ALL SELECT *, CAST('' AS fencerow.job_lane) FROM fencerow.finished_jobs;

-- The ids of ephemeral jobs that succeeded, which leave nothing else: a submit that is repeated after a lost answer finds
-- its job here.
CREATE TABLE fencerow.spent_ids (
    id uuid PRIMARY KEY,
    attempt bigint NOT NULL,
    ended_at timestamptz NOT NULL
);
CREATE INDEX spent_ids_age ON fencerow.spent_ids (ended_at);

-- A submit whose answer was lost is repeated, and the first statement may still be on its way: a network or a pooler may
-- deliver it when the repeat has long run and its job has left the live ones, so that the primary key lets it in. The
-- repeat leaves the id here, in its own transaction. Rows go by age; a late statement is delivered within it.
CREATE TABLE fencerow.repeated_ids (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL
);
CREATE INDEX repeated_ids_age ON fencerow.repeated_ids (at);

-- Until when first submits look at them, in seconds since 1970: whoever leaves some there sets it two days ahead, twice as
-- long as they are kept. A sequence, for its value is set at once and read as it is now, whatever the snapshot and the end
-- of the transaction. It is never without a value: one that may not be read has none, and then the submit looks.
CREATE SEQUENCE fencerow.repeats_until;
SELECT setval(CAST($$fencerow.repeats_until$$ AS regclass), 1);

-- The look that belongs to a first submit. It is a function because it must come after the insert and see what
-- was committed until then: a statement looks with one snapshot, which may be older than the repeat, but a volatile
-- function takes a new one. Once the row is in, no repeat can be: whoever made one has committed, and is seen here.
CREATE FUNCTION fencerow.refuse_repeated(ids uuid[]) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM fencerow.repeated_ids AS repeated WHERE repeated.id = ANY(ids)) THEN
        RAISE unique_violation USING MESSAGE = 'a job of this submit was submitted again before this arrived';
    END IF;
    RETURN true;
END $$;

-- A trigger of the user's that returns NULL before an insert leaves the row out, and the server says nothing of it. What
-- inserts several counts them, and calls this: raised here, the whole statement stores nothing, whoever sends it.
CREATE FUNCTION fencerow.refuse_left_out() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RAISE object_not_in_prerequisite_state USING MESSAGE = 'a trigger left the row of a job out: it returned NULL before the insert';
END $$;

-- One row per idempotency key. It outlives its job: expires_at is set when the job ends.
CREATE TABLE fencerow.keys (
    scope text NOT NULL,
    key text NOT NULL,
    job_id uuid NOT NULL,
    fingerprint text NOT NULL,
    lifetime_s double precision NOT NULL,        -- whoever submits says it: not for ever, and no less than no time
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (scope, key),
    CONSTRAINT keys_lifetime CHECK (lifetime_s BETWEEN 0 AND 1e9)
);
CREATE INDEX keys_job ON fencerow.keys (job_id);
CREATE INDEX keys_expiry ON fencerow.keys (expires_at) WHERE expires_at IS NOT NULL;

-- Weights of shares: how many jobs of it may start in one turn. A share without a row has one.
CREATE TABLE fencerow.shares (
    queue text NOT NULL,
    share text NOT NULL,                         -- empty: the jobs without a share
    weight integer NOT NULL CHECK (weight BETWEEN 1 AND 1000),
    set_at timestamptz NOT NULL,
    set_by text,
    PRIMARY KEY (queue, share)
);

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
    ended_at timestamptz,
    stated json,                                 -- what it says of itself at each renewal
    wanted json,                                 -- what operators want of it
    wanted_version bigint NOT NULL DEFAULT 0,
    wanted_at timestamptz,
    wanted_by text,
    wanted_reason text
);
CREATE INDEX workers_lease ON fencerow.workers (lease_until) WHERE state = 'alive';

-- Only queues about which somebody said something have a row.
CREATE TABLE fencerow.queues (
    name text PRIMARY KEY,
    paused_at timestamptz,
    paused_by text,
    reason text,
    -- A claim that knows nothing of limits finds nothing in a queue of which this is true. The queue without a name stands
    -- for all queues.
    limited boolean NOT NULL DEFAULT false
);
