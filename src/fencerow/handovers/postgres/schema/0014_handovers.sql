-- compatible_from: 1
-- Handovers: the ends of jobs, handed to a receiver in the order of the submits and kept until they are confirmed.

SET LOCAL lock_timeout = '500ms';
CREATE TABLE fencerow.handovers (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the order of the submits
    job_id uuid NOT NULL UNIQUE,
    receiver text NOT NULL,                      -- to whom
    key text NOT NULL,                           -- whose line it is
    hold_s double precision NOT NULL CHECK (hold_s BETWEEN 0 AND 1e9),  -- how long an end waits for those before it
    name text NOT NULL,                          -- the job's
    lined_at timestamptz NOT NULL CHECK (lined_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00'),
    state text CHECK (state IN ('succeeded', 'failed', 'cancelled')),  -- how it ended; NULL: it has not
    attempt bigint,
    result json,
    error json,
    ended_at timestamptz,
    held_until timestamptz,                      -- from then on it waits for nobody
    -- How often it was taken: the fence of a take. Each take raises it.
    token bigint NOT NULL DEFAULT 0 CHECK (token BETWEEN 0 AND 1000000000000000000),
    holder uuid,                                 -- the latest take
    taken_by text,
    taken_at timestamptz,
    lease_s double precision,
    free_at timestamptz,                         -- nobody else takes it before then
    confirmed_at timestamptz,
    confirmed_by text,
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CHECK (confirmed_at IS NULL OR state IS NOT NULL)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- Who stands before whom.
CREATE INDEX handovers_line ON fencerow.handovers (receiver, key, place) WHERE confirmed_at IS NULL;
-- The lines in which something has ended, and what waits for nobody any more.
CREATE INDEX handovers_ended ON fencerow.handovers (receiver, key) WHERE confirmed_at IS NULL AND state IS NOT NULL;
CREATE INDEX handovers_held ON fencerow.handovers (receiver, held_until) WHERE confirmed_at IS NULL AND state IS NOT NULL;
-- When a take is over.
CREATE INDEX handovers_taken ON fencerow.handovers (receiver, free_at)
    WHERE confirmed_at IS NULL AND state IS NOT NULL AND free_at IS NOT NULL;

-- Whoever was let into the idempotency keys is let into these; whoever submits may line up and read nothing. The relations
-- are named by the types of their rows, because no name stands inside a string.
DO $$
DECLARE
    known oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.queues)));
    jobs oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.jobs)));
    handovers oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.handovers)));
    given record;
BEGIN
    FOR given IN
        SELECT acl.privilege_type AS privilege,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = known AND acl.grantee <> relation.relowner
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(handovers AS regclass), given.role);
    END LOOP;
    FOR given IN
        SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = jobs AND acl.grantee <> relation.relowner AND acl.privilege_type = 'INSERT'
        UNION
        SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END
        FROM pg_attribute AS field, aclexplode(field.attacl) AS acl
        WHERE field.attrelid = jobs AND field.attname = 'args' AND acl.privilege_type = 'INSERT'
    LOOP
        EXECUTE format('GRANT INSERT (job_id, receiver, key, hold_s, name, lined_at) ON %s TO %s',
                       CAST(handovers AS regclass), given.role);
    END LOOP;
END $$;
