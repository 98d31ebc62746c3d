-- compatible_from: 1

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
