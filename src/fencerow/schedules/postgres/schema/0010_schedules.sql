-- compatible_from: 1
-- Schedules: what is submitted again and again, and the ticks that submitted it.

-- A row for every schedule, and one for each of its entities. The row of a schedule with entities is their head: it
-- never fires, keeps what holds for all of them, and has no next_at.
CREATE TABLE fencerow.schedules (
    name text NOT NULL,
    entity text NOT NULL,                        -- '': the schedule itself
    kind text NOT NULL CHECK (kind IN ('single', 'head', 'entity')),
    job text NOT NULL,
    origin text NOT NULL CHECK (origin IN ('code', 'person')),
    owner text NOT NULL,                         -- the program that declared it; '' of a person's
    definition text NOT NULL,                    -- JSON: when it fires, by which rules, and what it submits
    digest text NOT NULL,                        -- of the definition
    version bigint NOT NULL DEFAULT 1,           -- goes up with every change of the definition, and with every pause
    next_at timestamptz,                         -- the next fire
    last_at timestamptz,                         -- the latest fire that made a job
    last_job_id uuid,
    zones text,                                  -- the version of the time zones by which next_at was computed
    paused_at timestamptz,                       -- by people only
    paused_by text,
    pause_reason text,
    paused_with_all boolean NOT NULL DEFAULT false,  -- not for its own sake: who resumes all resumes it
    undeclared_at timestamptz,                   -- no longer in code or in its list; kept for its pause alone
    changed_at timestamptz NOT NULL,
    changed_by text,
    refresh_at timestamptz,                      -- of a head: when the list of entities is looked at next; NULL: now
    trouble text,                                -- why it cannot fire, or why its entities are not looked after
    forgotten_until timestamptz,                 -- the latest fire that made a job and whose tick was purged
    PRIMARY KEY (name, entity),
    CHECK ((kind = 'head') = (next_at IS NULL)),
    CHECK ((kind = 'entity') <= (entity <> '') AND (kind = 'head') <= (entity = '')),
    CHECK ((undeclared_at IS NOT NULL OR paused_with_all) <= (paused_at IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX schedules_due ON fencerow.schedules (next_at, name, entity) WHERE paused_at IS NULL;

-- A row for every fire that was decided: the primary key is why none is decided twice.
CREATE TABLE fencerow.schedule_ticks (
    name text NOT NULL,
    entity text NOT NULL,
    fire_at timestamptz NOT NULL,
    made text NOT NULL CHECK (made IN ('job', 'overlap', 'window', 'late')),
    job_id uuid,
    left_out integer NOT NULL DEFAULT 0,         -- fires before it that nobody will make
    at timestamptz NOT NULL,
    made_by text,                                -- who asked; NULL: its time had come
    ended boolean NOT NULL DEFAULT false,        -- its job has ended, as somebody saw since
    PRIMARY KEY (name, entity, fire_at),
    CHECK ((made = 'job') = (job_id IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX schedule_ticks_age ON fencerow.schedule_ticks (at);
CREATE INDEX schedule_ticks_live ON fencerow.schedule_ticks (name, entity) WHERE job_id IS NOT NULL AND NOT ended;

-- A row for every program that declares schedules: which of its releases counts.
CREATE TABLE fencerow.schedule_programs (
    owner text PRIMARY KEY,
    version bigint NOT NULL,                     -- of what it declares; an older one changes nothing
    digest text NOT NULL,                        -- of all that it declares
    declared_at timestamptz NOT NULL,
    declared_by text,
    contradicted_at timestamptz,                 -- when a living worker last found that it declares otherwise
    contradicted_by text
);
