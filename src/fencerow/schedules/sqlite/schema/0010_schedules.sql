-- compatible_from: 1
-- Schedules: what is submitted again and again, and the ticks that submitted it.

-- A row for every schedule, and one for each of its entities. The row of a schedule with entities is their head: it
-- never fires, keeps what holds for all of them, and has no next_at.
CREATE TABLE fencerow.schedules (
    name TEXT NOT NULL,
    entity TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('single', 'head', 'entity')),
    job TEXT NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('code', 'person')),
    owner TEXT NOT NULL,
    definition TEXT NOT NULL,
    digest TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    next_at INTEGER,
    last_at INTEGER,
    last_job_id TEXT,
    zones TEXT,
    paused_at INTEGER,
    paused_by TEXT,
    pause_reason TEXT,
    paused_with_all INTEGER NOT NULL DEFAULT 0,
    undeclared_at INTEGER,
    changed_at INTEGER NOT NULL,
    changed_by TEXT,
    refresh_at INTEGER,
    trouble TEXT,
    forgotten_until INTEGER,
    PRIMARY KEY (name, entity),
    CHECK ((kind = 'head') = (next_at IS NULL)),
    CHECK ((kind = 'entity') <= (entity <> '') AND (kind = 'head') <= (entity = '')),
    CHECK ((undeclared_at IS NOT NULL OR paused_with_all) <= (paused_at IS NOT NULL)),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(entity), typeof(job), typeof(owner),
        typeof(definition), typeof(digest), typeof(last_job_id), typeof(zones), typeof(paused_by),
        typeof(pause_reason), typeof(changed_by), typeof(trouble)))
) WITHOUT ROWID;
CREATE INDEX fencerow.schedules_due ON fencerow.schedules (next_at, name, entity) WHERE paused_at IS NULL;

-- A row for every fire that was decided: the primary key is why none is decided twice.
CREATE TABLE fencerow.schedule_ticks (
    name TEXT NOT NULL,
    entity TEXT NOT NULL,
    fire_at INTEGER NOT NULL,
    made TEXT NOT NULL CHECK (made IN ('job', 'overlap', 'window', 'late')),
    job_id TEXT,
    left_out INTEGER NOT NULL DEFAULT 0,
    at INTEGER NOT NULL,
    made_by TEXT,
    ended INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, entity, fire_at),
    CHECK ((made = 'job') = (job_id IS NOT NULL)),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(entity), typeof(job_id), typeof(made_by)))
) WITHOUT ROWID;
CREATE INDEX fencerow.schedule_ticks_age ON fencerow.schedule_ticks (at);
CREATE INDEX fencerow.schedule_ticks_live ON fencerow.schedule_ticks (name, entity)
    WHERE job_id IS NOT NULL AND NOT ended;

-- A row for every program that declares schedules: which of its releases counts.
CREATE TABLE fencerow.schedule_programs (
    owner TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    declared_at INTEGER NOT NULL,
    declared_by TEXT,
    contradicted_at INTEGER,
    contradicted_by TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(owner), typeof(digest), typeof(declared_by),
        typeof(contradicted_by)))
) WITHOUT ROWID;
