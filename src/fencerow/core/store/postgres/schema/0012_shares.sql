-- compatible_from: 1
-- Shares: whose a job is, where a queue is divided between several.

SET LOCAL lock_timeout = '500ms';
-- In the order in which workers lock them. Both at once: rows move between them by SELECT *.
LOCK TABLE fencerow.jobs, fencerow.finished_jobs IN ACCESS EXCLUSIVE MODE;
ALTER TABLE fencerow.jobs ADD COLUMN share text;
ALTER TABLE fencerow.finished_jobs ADD COLUMN share text;
-- Not every index that a job comes to later takes a longer one.
ALTER TABLE fencerow.jobs ADD CONSTRAINT jobs_share_length CHECK (COALESCE(length(share) <= 400, true)) NOT VALID;
CREATE OR REPLACE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;

-- Weights of shares: how many jobs of it may start in one turn. A share without a row has one.
CREATE TABLE fencerow.shares (
    queue text NOT NULL,
    share text NOT NULL,                         -- empty: the jobs without a share
    weight integer NOT NULL CHECK (weight BETWEEN 1 AND 1000),
    set_at timestamptz NOT NULL,
    set_by text,
    PRIMARY KEY (queue, share)
);

-- Whoever was let into the other tables is let into this one; whoever submits may say whose a job is. The relations are named
-- by the types of their rows, because no name stands inside a string.
DO $$
DECLARE
    known oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.queues)));
    jobs oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.jobs)));
    shares oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.shares)));
    given record;
BEGIN
    FOR given IN
        SELECT acl.privilege_type AS privilege,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = known AND acl.grantee <> relation.relowner
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(shares AS regclass), given.role);
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
        EXECUTE format('GRANT INSERT (share) ON %s TO %s', CAST(jobs AS regclass), given.role);
    END LOOP;
END $$;

-- built concurrently: the line of each share; jobs without one are not in it
CREATE INDEX jobs_share ON fencerow.jobs (queue, priority, share, run_at, id)
    WHERE state = 'queued' AND NOT suspect AND share IS NOT NULL;
