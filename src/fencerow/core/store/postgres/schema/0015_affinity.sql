-- compatible_from: 1
-- Affinity: jobs that only workers with a label take, for ever or for a while.

SET LOCAL lock_timeout = '500ms';
-- In the order in which workers lock them. Both at once: rows move between them by SELECT *.
LOCK TABLE fencerow.jobs, fencerow.finished_jobs IN ACCESS EXCLUSIVE MODE;
ALTER TABLE fencerow.jobs
    ADD COLUMN affinity text,                          -- the label that a worker must carry to take it
    ADD COLUMN affinity_wait_s double precision;       -- after which, from when it is due, anybody may; NULL: never
ALTER TABLE fencerow.finished_jobs
    ADD COLUMN affinity text,
    ADD COLUMN affinity_wait_s double precision;
-- NaN is greater than every number.
ALTER TABLE fencerow.jobs ADD CONSTRAINT jobs_affinity_values CHECK (
    COALESCE(length(affinity) <= 400, true) AND COALESCE(affinity_wait_s BETWEEN -1e9 AND 1e9, true)
) NOT VALID;
CREATE OR REPLACE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;

-- Whoever submits may say which label a job needs. The relations are named by the types of their rows, because no name
-- stands inside a string.
DO $$
DECLARE
    jobs oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.jobs)));
    given record;
BEGIN
    FOR given IN
        SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = jobs AND acl.grantee <> relation.relowner AND acl.privilege_type = 'INSERT'
        UNION
        SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END
        FROM pg_attribute AS field, aclexplode(field.attacl) AS acl
        WHERE field.attrelid = jobs AND field.attname = 'args' AND acl.privilege_type = 'INSERT'
    LOOP
        EXECUTE format('GRANT INSERT (affinity, affinity_wait_s) ON %s TO %s', CAST(jobs AS regclass), given.role);
    END LOOP;
END $$;

-- built concurrently: the lanes of each label, its suspects, and who may be taken by anybody when; jobs without affinity are in none
CREATE INDEX jobs_affinity ON fencerow.jobs (queue, affinity, priority DESC, run_at, id)
    WHERE state = 'waiting' AND affinity IS NOT NULL AND NOT suspect;
CREATE INDEX jobs_affinity_suspect ON fencerow.jobs (queue, affinity, run_at, id)
    WHERE state = 'waiting' AND affinity IS NOT NULL AND suspect;
CREATE INDEX jobs_fallback ON fencerow.jobs (fencerow.later(run_at, affinity_wait_s))
    WHERE state = 'waiting' AND affinity IS NOT NULL AND affinity_wait_s IS NOT NULL;
