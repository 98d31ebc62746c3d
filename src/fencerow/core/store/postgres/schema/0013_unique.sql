-- compatible_from: 1
-- Unique jobs: the job that was submitted last under each key.

SET LOCAL lock_timeout = '500ms';
CREATE TABLE fencerow.unique_jobs (
    scope text NOT NULL,
    key text NOT NULL,
    job_id uuid NOT NULL,                        -- the last that was stored under the key
    first_at timestamptz NOT NULL,               -- when that was
    until_at timestamptz,                        -- the key is this job's until then, whatever becomes of it
    PRIMARY KEY (scope, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX unique_jobs_job ON fencerow.unique_jobs (job_id);
-- Whoever submits says how long a key is kept after its job: not for ever, and no less than no time.
ALTER TABLE fencerow.keys ADD CONSTRAINT keys_lifetime CHECK (lifetime_s BETWEEN 0 AND 1e9) NOT VALID;

-- Whoever was let into the idempotency keys is let into these.
DO $$
DECLARE
    known oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.keys)));
    unique_jobs oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.unique_jobs)));
    given record;
BEGIN
    FOR given IN
        SELECT acl.privilege_type AS privilege,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = known AND acl.grantee <> relation.relowner
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(unique_jobs AS regclass), given.role);
    END LOOP;
END $$;
