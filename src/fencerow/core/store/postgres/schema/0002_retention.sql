-- compatible_from: 1
-- Finished jobs in partitions: one for each final state and period, so that retention detaches and drops a table
-- instead of deleting rows. There is no default partition; period 0 is the table as it was. It keeps what was
-- there, what has a retention of its own, and what ends while no period is open: a job that ends never lacks a place.
-- Ephemeral jobs leave their id when they succeed, and nothing else.

SET LOCAL lock_timeout = '500ms';
-- In the order in which workers lock them. Both at once: archive moves rows by SELECT *.
LOCK TABLE fencerow.jobs, fencerow.finished_jobs IN ACCESS EXCLUSIVE MODE;
ALTER TABLE fencerow.jobs
    ADD COLUMN IF NOT EXISTS period bigint NOT NULL DEFAULT 0,          -- of a finished job: where it lies
    ADD COLUMN IF NOT EXISTS ephemeral boolean NOT NULL DEFAULT false;  -- its success leaves no finished row
ALTER TABLE fencerow.finished_jobs
    ADD COLUMN IF NOT EXISTS period bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS ephemeral boolean NOT NULL DEFAULT false;
ALTER TABLE fencerow.finished_jobs
    DROP CONSTRAINT IF EXISTS finished_jobs_period,
    ADD CONSTRAINT finished_jobs_period CHECK (period = 0) NOT VALID;

-- next transaction: the long look at every row, under a lock that lets others read and write
ALTER TABLE fencerow.finished_jobs VALIDATE CONSTRAINT finished_jobs_period;

-- next transaction: nothing here looks at a row any more
SET LOCAL lock_timeout = '500ms';
LOCK TABLE fencerow.jobs, fencerow.finished_jobs IN ACCESS EXCLUSIVE MODE;
ALTER TABLE fencerow.finished_jobs RENAME TO finished_kept;
CREATE TABLE fencerow.finished_jobs (LIKE fencerow.jobs INCLUDING DEFAULTS) PARTITION BY LIST (period);
ALTER TABLE fencerow.finished_jobs  -- under the name that it has in the table as it was
    ADD CONSTRAINT finished_jobs_check
    CHECK (state IN ('succeeded', 'failed', 'cancelled') AND ended_at IS NOT NULL);
ALTER TABLE fencerow.finished_jobs ATTACH PARTITION fencerow.finished_kept FOR VALUES IN (0);
CREATE OR REPLACE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;

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

-- The ids of ephemeral jobs that succeeded: a submit that is repeated after a lost answer finds its job here.
CREATE TABLE fencerow.spent_ids (
    id uuid PRIMARY KEY,
    attempt bigint NOT NULL,
    ended_at timestamptz NOT NULL
);
CREATE INDEX spent_ids_age ON fencerow.spent_ids (ended_at);

-- Whoever was let into the table as it was is let into those in its place. The relations are named by the types
-- of their rows, because no name stands inside a string.
DO $$
DECLARE
    kept oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.finished_kept)));
    finished oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.finished_jobs)));
    periods oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.finished_periods)));
    spent oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.spent_ids)));
    given record;
BEGIN
    FOR given IN
        SELECT acl.privilege_type AS privilege, '' AS field,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = kept AND acl.grantee <> relation.relowner
        UNION ALL
        SELECT acl.privilege_type, format('(%I)', field.attname),
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END
        FROM pg_attribute AS field, aclexplode(field.attacl) AS acl
        WHERE field.attrelid = kept
    LOOP
        EXECUTE format('GRANT %s%s ON %s TO %s', given.privilege, given.field, CAST(finished AS regclass), given.role);
        IF given.field IN ('', '(id)') THEN
            EXECUTE format('GRANT %s%s ON %s TO %s', given.privilege, given.field, CAST(spent AS regclass), given.role);
        END IF;
        IF given.field = '' THEN
            EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(periods AS regclass), given.role);
        END IF;
    END LOOP;
END $$;
