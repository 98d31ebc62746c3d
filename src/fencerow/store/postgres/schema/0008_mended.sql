-- compatible_from: 1

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
SET LOCAL lock_timeout = '500ms';
CREATE INDEX jobs_parked ON fencerow.jobs (ended_at)
    WHERE state IN ('succeeded', 'failed', 'cancelled') AND ended_at IS NOT NULL;
