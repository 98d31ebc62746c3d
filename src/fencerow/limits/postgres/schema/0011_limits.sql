-- compatible_from: 1
-- Limits: what is said of each, and what is remembered of each and of each of its keys.

SET LOCAL lock_timeout = '500ms';
CREATE TABLE fencerow.limits (
    name text PRIMARY KEY,
    definition text NOT NULL,                    -- JSON: slots, rate, hours, breaker
    revision bigint NOT NULL DEFAULT 1,          -- raised by each change: of two at once one wins
    version bigint NOT NULL DEFAULT 0,           -- of the newest declaration in code; 0: none was seen
    declared text,                               -- what that declaration said
    set_at timestamptz NOT NULL,
    set_by text,
    reason text
);

-- One row is locked for each start under a limit, so that two starts never count the same.
CREATE TABLE fencerow.limit_states (
    name text PRIMARY KEY,                       -- of the limit; or with a key behind a slash
    state text NOT NULL,                         -- JSON: the rate's and the breaker's memory
    changed_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Which limits have a breaker. Whoever ends an attempt in a failure looks here whether anybody wants to be told.
CREATE TABLE fencerow.watched_limits (
    name text PRIMARY KEY
);

-- A failure under such a limit, until somebody who has locked the limit takes it. Inserting takes no lock.
CREATE TABLE fencerow.limit_failures (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,                          -- of the limit; or with a key behind a slash
    at timestamptz NOT NULL,
    PRIMARY KEY (name, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- A claim that knows nothing of limits finds nothing in a queue of which this is true. The queue without a name stands
-- for all queues.
ALTER TABLE fencerow.queues ADD COLUMN limited boolean NOT NULL DEFAULT false;

-- Whoever works with the tables without owning them works with these too: as with the queues, which only those
-- may write. Whoever may submit jobs must see which limits there are.
DO $$
DECLARE
    known oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.queues)));
    jobs oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.jobs)));
    limits oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.limits)));
    watched oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.watched_limits)));
    failures oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.limit_failures)));
    states oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.limit_states)));
    given record;
BEGIN
    FOR given IN
        SELECT acl.privilege_type AS privilege,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS table_of, aclexplode(table_of.relacl) AS acl
        WHERE table_of.oid = known AND acl.grantee <> table_of.relowner
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(limits AS regclass), given.role);
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(states AS regclass), given.role);
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(watched AS regclass), given.role);
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(failures AS regclass), given.role);
    END LOOP;
    FOR given IN
        SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS table_of, aclexplode(table_of.relacl) AS acl
        WHERE table_of.oid = jobs AND acl.grantee <> table_of.relowner AND acl.privilege_type = 'INSERT'
        UNION
        SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END
        FROM pg_attribute AS field, aclexplode(field.attacl) AS acl
        WHERE field.attrelid = jobs AND field.attname = 'args' AND acl.privilege_type = 'INSERT'
    LOOP
        EXECUTE format('GRANT SELECT ON %s TO %s', CAST(limits AS regclass), given.role);
    END LOOP;
END $$;
