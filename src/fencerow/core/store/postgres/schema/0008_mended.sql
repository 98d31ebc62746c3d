-- compatible_from: 1
-- What the first versions let in, or could not survive.

-- Rows that nobody can work with.
-- A role that may insert jobs could write a time limit that is no number, an instant at the end of all time or a count
-- at the end of its type, and the statement that met it failed for everybody. Two things are done about it. The
-- conversions have an answer for every value, so that no stored row makes a statement fail, whoever wrote it; the
-- answers for values that our own code stores are the same as before. And such values are refused at the door.

-- Instants travel as whole microseconds since 1970. Those beyond what is counted so travel as its ends, and come back
-- as the infinities, which lie behind and before every instant.
CREATE OR REPLACE FUNCTION fencerow.us(instant timestamptz) RETURNS bigint LANGUAGE sql STABLE
    AS 'SELECT CASE WHEN instant = TIMESTAMPTZ ''-infinity'' THEN -300000000000000000
                    WHEN instant >= TIMESTAMPTZ ''200000-01-01 00:00:00+00'' THEN 6000000000000000000
                    ELSE CAST(extract(epoch FROM instant) * 1000000 AS bigint) END';
CREATE OR REPLACE FUNCTION fencerow.at(us bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE
    AS 'SELECT CASE WHEN us <= -210000000000000000 THEN TIMESTAMPTZ ''-infinity''
                    WHEN us >= 6000000000000000000 THEN TIMESTAMPTZ ''infinity''
                    ELSE TIMESTAMPTZ ''1970-01-01 00:00:00+00'' + us * INTERVAL ''1 microsecond'' END';
-- No span is longer than 3,000 years; what is no number, or infinite, is that long. NULL stays NULL.
CREATE OR REPLACE FUNCTION fencerow.seconds(s double precision) RETURNS interval LANGUAGE sql IMMUTABLE
    AS 'SELECT CASE WHEN s BETWEEN -1e11 AND 1e11 THEN s WHEN s > 0 THEN 1e11 WHEN s < 0 THEN -1e11 END
               * INTERVAL ''1 second''';
-- It stands in an index of the finished jobs: no entry of a retention that our own code stores changes by this.
CREATE OR REPLACE FUNCTION fencerow.later(instant timestamptz, s double precision) RETURNS timestamptz LANGUAGE sql IMMUTABLE
    AS 'SELECT instant + CASE WHEN s BETWEEN -1e11 AND 1e11 THEN s WHEN s > 0 THEN 1e11 WHEN s < 0 THEN -1e11 END
               * INTERVAL ''1 second''';

-- The door. Without a look at the rows that are there, so that the lock is held for an instant only. What counts up
-- while a job lives is brought far below its bound where it was above it: a bound is also met by an update.
SET LOCAL lock_timeout = '500ms';
ALTER TABLE fencerow.jobs
    DROP CONSTRAINT IF EXISTS jobs_numbers,
    ADD CONSTRAINT jobs_numbers CHECK (
        attempt BETWEEN 0 AND 8000000000000000000
        AND failures BETWEEN 0 AND 2000000000
        AND crashes BETWEEN 0 AND 2000000000
        AND snoozes BETWEEN 0 AND 2000000000
        AND attempts_max BETWEEN 0 AND 1000000000
        AND crashes_max BETWEEN 0 AND 1000000000
        AND snoozes_max BETWEEN 0 AND 1000000000
        AND args_bytes >= 0
        AND (timeout_s IS NULL OR timeout_s BETWEEN 0 AND 1e9)
        AND (retention_s IS NULL OR retention_s BETWEEN 0 AND 1e10)
    ) NOT VALID,
    DROP CONSTRAINT IF EXISTS jobs_instants,
    ADD CONSTRAINT jobs_instants CHECK (
        run_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00'
        AND submitted_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00'
        AND (expires_at IS NULL OR expires_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00')
    ) NOT VALID,
    -- The finished jobs are indexed by these as jsonb, which knows less than json does: no null character and no half
    -- of a pair. A job that carries one could never end, nor could those that are moved together with it.
    DROP CONSTRAINT IF EXISTS jobs_labels,
    ADD CONSTRAINT jobs_labels CHECK (
        (tags IS NULL OR CAST(tags AS jsonb) IS NOT NULL) AND (metadata IS NULL OR CAST(metadata AS jsonb) IS NOT NULL)
    ) NOT VALID;

-- next transaction: what such rows there are is brought within the bounds, under a lock that lets others read and write
UPDATE fencerow.jobs
SET attempt = greatest(0, least(attempt, 4000000000000000000)),
    failures = greatest(0, least(failures, 1000000000)),
    crashes = greatest(0, least(crashes, 1000000000)),
    snoozes = greatest(0, least(snoozes, 1000000000)),
    attempts_max = greatest(0, least(attempts_max, 1000000000)),
    crashes_max = greatest(0, least(crashes_max, 1000000000)),
    snoozes_max = greatest(0, least(snoozes_max, 1000000000)),
    args_bytes = greatest(0, args_bytes),
    timeout_s = CASE WHEN timeout_s IS NOT NULL THEN greatest(0, least(timeout_s, 1e9)) END,
    retention_s = CASE WHEN retention_s IS NOT NULL THEN greatest(0, least(retention_s, 1e10)) END,
    run_at = greatest(least(run_at, '9999-12-31 00:00:00+00'), '0001-01-02 00:00:00+00'),
    submitted_at = greatest(least(submitted_at, '9999-12-31 00:00:00+00'), '0001-01-02 00:00:00+00'),
    expires_at = CASE WHEN expires_at IS NOT NULL
                      THEN greatest(least(expires_at, '9999-12-31 00:00:00+00'), '0001-01-02 00:00:00+00') END
WHERE NOT (
        attempt BETWEEN 0 AND 8000000000000000000
        AND failures BETWEEN 0 AND 2000000000
        AND crashes BETWEEN 0 AND 2000000000
        AND snoozes BETWEEN 0 AND 2000000000
        AND attempts_max BETWEEN 0 AND 1000000000
        AND crashes_max BETWEEN 0 AND 1000000000
        AND snoozes_max BETWEEN 0 AND 1000000000
        AND args_bytes >= 0
        AND (timeout_s IS NULL OR timeout_s BETWEEN 0 AND 1e9)
        AND (retention_s IS NULL OR retention_s BETWEEN 0 AND 1e10)
        AND run_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00'
        AND submitted_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00'
        AND (expires_at IS NULL OR expires_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00')
    );
DO $$
DECLARE
    live record;
BEGIN
    FOR live IN SELECT job.id, job.tags, job.metadata FROM fencerow.jobs AS job
                WHERE job.tags IS NOT NULL OR job.metadata IS NOT NULL
    LOOP
        BEGIN
            PERFORM CAST(live.tags AS jsonb), CAST(live.metadata AS jsonb);
        EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
            UPDATE fencerow.jobs SET tags = NULL, metadata = NULL WHERE id = live.id;
        END;
    END LOOP;
END $$;
ALTER TABLE fencerow.jobs VALIDATE CONSTRAINT jobs_numbers;
ALTER TABLE fencerow.jobs VALIDATE CONSTRAINT jobs_instants;
ALTER TABLE fencerow.jobs VALIDATE CONSTRAINT jobs_labels;

-- next transaction: what is new, under locks that are asked for briefly
SET LOCAL lock_timeout = '500ms';

-- === Guards: which run of its owner has a key or a source ====================================================

-- A later attempt of the same owner takes over what an earlier one has left; the same attempt does not. NULL: the
-- owner numbers no attempts, and nobody takes over before the lease ends.
ALTER TABLE fencerow.once_keys ADD COLUMN attempt bigint;
ALTER TABLE fencerow.sources ADD COLUMN attempt bigint;

-- Which attempt of a job has claimed a row of a user's table, under which fence: the job's next attempt may claim it
-- while the fence is that one.
CREATE TABLE fencerow.row_leases (
    target text NOT NULL,                        -- the user's table, by its oid
    sub text NOT NULL,                           -- the sub-state's name; '': the main state
    row_id text NOT NULL,
    fence bigint NOT NULL,
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    until timestamptz NOT NULL,                  -- when the line may be forgotten
    PRIMARY KEY (target, sub, row_id)
);
CREATE INDEX row_leases_job ON fencerow.row_leases (job_id);
CREATE INDEX row_leases_expiry ON fencerow.row_leases (until);

-- The highest token among the mutexes that were forgotten after long disuse: a key that is taken anew begins above it, so
-- that its token never goes back.
CREATE TABLE fencerow.mutex_floor (
    one integer PRIMARY KEY CHECK (one = 1),     -- one row at most
    token bigint NOT NULL
);

-- Whoever works with the tables without owning them works with these too: as with the queues, which only those
-- may write.
DO $$
DECLARE
    known oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.queues)));
    made oid[] := ARRAY(SELECT typrelid FROM pg_type WHERE oid IN (
        pg_typeof(CAST(NULL AS fencerow.row_leases)), pg_typeof(CAST(NULL AS fencerow.mutex_floor))));
    given record;
BEGIN
    FOR given IN
        SELECT acl.privilege_type AS privilege, new_table,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl, unnest(made) AS new_table
        WHERE relation.oid = known AND acl.grantee <> relation.relowner
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(given.new_table AS regclass), given.role);
    END LOOP;
END $$;

-- --- Ids that were submitted again -----------------------------------------------------------------------------------
-- A submit whose answer was lost is repeated, and the first statement may still be on its way: a network or a pooler may
-- deliver it when the repeat has long run and its job has left the live ones, so that the primary key lets it in. The
-- repeat leaves the id here, in its own transaction. Rows go by age; a late statement is delivered within it.
CREATE TABLE fencerow.repeated_ids (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL
);
CREATE INDEX repeated_ids_age ON fencerow.repeated_ids (at);

-- The look at them that belongs to a first submit. It is a function because it must come after the insert and see what
-- was committed until then: a statement looks with one snapshot, which may be older than the repeat, but a volatile
-- function takes a new one. Once the row is in, no repeat can be: whoever made one has committed, and is seen here.
CREATE FUNCTION fencerow.refuse_repeated(ids uuid[]) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM fencerow.repeated_ids AS repeated WHERE repeated.id = ANY(ids)) THEN
        RAISE unique_violation USING MESSAGE = 'a job of this submit was submitted again before this arrived';
    END IF;
    RETURN true;
END $$;

-- Whoever was let into the other tables is let into this one; whoever submits must see the ids in it, and whoever may
-- repeat a submit must leave them. The relations are named by the types of their rows, because no name stands inside a
-- string.
DO $$
DECLARE
    known oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.queues)));
    jobs oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.jobs)));
    repeated oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.repeated_ids)));
    looking oid := (SELECT proc.oid FROM pg_proc AS proc
                    WHERE proc.proname = 'refuse_repeated'
                      AND proc.pronamespace = (SELECT relnamespace FROM pg_class WHERE pg_class.oid = jobs));
    given record;
BEGIN
    FOR given IN
        SELECT table_of.oid AS source, acl.privilege_type AS privilege,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS table_of, aclexplode(table_of.relacl) AS acl
        WHERE table_of.oid IN (known, jobs) AND acl.grantee <> table_of.relowner
    LOOP
        IF given.source = known THEN
            EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(repeated AS regclass), given.role);
        ELSIF given.privilege = 'INSERT' THEN
            EXECUTE format('GRANT SELECT (id) ON %s TO %s', CAST(repeated AS regclass), given.role);
        ELSIF given.privilege = 'DELETE' THEN
            EXECUTE format('GRANT INSERT ON %s TO %s', CAST(repeated AS regclass), given.role);
        END IF;
        IF given.source = jobs AND given.privilege = 'INSERT' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', CAST(looking AS regprocedure), given.role);
        END IF;
    END LOOP;
END $$;

-- --- Jobs that have ended and could not be moved ------------------------------------------------------------------
-- Maintenance looks for them and moves them when the database lets it. There are none, as a rule.
-- The index is built over the live jobs alone; who writes them waits for it, but not for the lock in front of it.
CREATE INDEX jobs_parked ON fencerow.jobs (ended_at)
    WHERE state IN ('succeeded', 'failed', 'cancelled') AND ended_at IS NOT NULL;
