-- compatible_from: 1
-- Whether the gateways are under maintenance: they are while the one row stands here.
CREATE TABLE fencerow.gateway_maintenance (
    id integer PRIMARY KEY CHECK (id = 1),
    since timestamptz NOT NULL CHECK (isfinite(since)),
    set_by text CHECK (length(set_by) BETWEEN 1 AND 500),
    reason text CHECK (length(reason) BETWEEN 1 AND 500),
    retry_after_s integer NOT NULL CHECK (retry_after_s BETWEEN 1 AND 86400)  -- what callers are told
);

-- Whoever works with the tables without owning them works with this one too, as with the queues, which only those may
-- write. The relations are named by the types of their rows, because no name stands inside a string.
DO $$
DECLARE
    known oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.queues)));
    made oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.gateway_maintenance)));
    given record;
BEGIN
    FOR given IN
        SELECT acl.privilege_type AS privilege,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = known AND acl.grantee <> relation.relowner
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(made AS regclass), given.role);
    END LOOP;
END $$;
