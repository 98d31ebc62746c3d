-- compatible_from: 1
-- Mutexes: a row for every key that was ever taken, free or held. It stays after a release, so that its token never
-- goes back. Only `key` is indexed: taking, renewing and releasing write the row in place.
CREATE TABLE fencerow.mutexes (
    key text PRIMARY KEY,
    token bigint NOT NULL,                       -- the fence: each take raises it, nothing lowers it
    holder uuid,                                 -- an id made for one take; NULL: nobody holds it
    stale_s double precision NOT NULL,           -- how long after a renewal it may be taken over
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    job_id uuid,                                 -- the attempt that took it, if one did
    attempt bigint,
    job_name text,
    host text NOT NULL,
    pid bigint NOT NULL,
    purpose text,
    freed_at timestamptz,                        -- the last time that an operator took it from its holder
    freed_by text,
    freed_reason text,
    CHECK ((job_id IS NULL) = (attempt IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- How often a job has put itself back because of one busy mutex. The row goes when the job gets the mutex or its
-- attempt gives up; what a cancelled job leaves goes by age.
CREATE TABLE fencerow.mutex_deferrals (
    job_id uuid NOT NULL,
    key text NOT NULL,
    attempt bigint NOT NULL,                     -- the last that was put back: it counts once
    deferrals integer NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (job_id, key)
);
CREATE INDEX mutex_deferrals_age ON fencerow.mutex_deferrals (at);

-- The highest token among the mutexes that were forgotten after long disuse: a key that is taken anew begins above it, so
-- that its token never goes back.
CREATE TABLE fencerow.mutex_floor (
    one integer PRIMARY KEY CHECK (one = 1),     -- one row at most
    token bigint NOT NULL
);
