-- compatible_from: 1
-- Turns: jobs that run one at a time for each key, or few at a time, wait at a gate until it is their turn.

SET LOCAL lock_timeout = '500ms';
-- In the order in which workers lock them. Both at once: rows move between them by SELECT *.
LOCK TABLE fencerow.jobs, fencerow.finished_jobs IN ACCESS EXCLUSIVE MODE;
ALTER TABLE fencerow.jobs
    ADD COLUMN exclusive text,                         -- the key of which few run at a time
    ADD COLUMN exclusive_slots integer,                -- how many; NULL: one
    ADD COLUMN strict boolean NOT NULL DEFAULT false,  -- it keeps its turn between its attempts
    ADD COLUMN limits text[],                          -- the limits in which it must have a turn
    ADD COLUMN gate text,                              -- where it waits for its turn, while it does
    ADD COLUMN turned_at timestamptz;                  -- when its turn came; of one taken back, until when others go
ALTER TABLE fencerow.finished_jobs
    ADD COLUMN exclusive text,
    ADD COLUMN exclusive_slots integer,
    ADD COLUMN strict boolean NOT NULL DEFAULT false,
    ADD COLUMN limits text[],
    ADD COLUMN gate text,
    ADD COLUMN turned_at timestamptz;
CREATE OR REPLACE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;
-- Whoever submits may say that a job waits for its turn, and with this no more than that about its state.
ALTER TABLE fencerow.jobs
    ADD CONSTRAINT jobs_ended CHECK (state IN ('waiting', 'queued', 'running') OR ended_at IS NOT NULL) NOT VALID,
    ADD CONSTRAINT jobs_exclusive CHECK (exclusive_slots IS NULL OR exclusive_slots BETWEEN 1 AND 1000000) NOT VALID,
    -- Many jobs are looked at together when turns are given. So nobody stores limits that cannot be read as a list of names,
    -- or a text that no index takes: while a job waits it is in few of them, and it would meet the others with its turn.
    -- An explicit cast to a length cuts off what is longer. The lengths are above all that our own code writes.
    ADD CONSTRAINT jobs_gates CHECK (
        COALESCE(length(queue) <= 200 AND length(name) <= 400, true)
        AND COALESCE(length(exclusive) <= 400, true)
        AND COALESCE(length(gate) <= 420, true)
        AND (limits IS NULL
             OR (COALESCE(array_ndims(limits), 0) = 1
                 AND array_lower(limits, 1) = 1
                 AND array_position(limits, NULL) IS NULL
                 AND cardinality(limits) <= 100
                 AND CAST(CAST(limits AS varchar(400)[]) AS text[]) = limits))
    ) NOT VALID;

-- A gate: where jobs wait for their turn. Its row is what those lock who give turns there; how many turns are taken
-- stands nowhere, it is counted from the jobs.
CREATE TABLE fencerow.gates (
    name text PRIMARY KEY,           -- with its kind in front: key:<key>
    next_at timestamptz                          -- when the first that waits there and is not due yet will be
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX gates_next ON fencerow.gates (next_at) WHERE next_at IS NOT NULL;

-- "Look at this gate": a job came to it, or one that had a turn there has ended. Inserting takes no
-- lock, so it may happen in a user's transaction.
CREATE TABLE fencerow.gate_arrivals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    gate text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX gate_arrivals_gate ON fencerow.gate_arrivals (gate);  -- a look takes all arrivals of its gates

-- Whoever was let into the other tables is let into these; whoever submits may do so with the new columns, leave
-- an arrival, and look whether all workers know what a job needs. The relations are named by the types of their rows, because no name stands inside a string.
DO $$
DECLARE
    known oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.queues)));
    jobs oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.jobs)));
    gates oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.gates)));
    arrivals oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.gate_arrivals)));
    workers oid := (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.workers)));
    given record;
BEGIN
    FOR given IN
        SELECT acl.privilege_type AS privilege,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = known AND acl.grantee <> relation.relowner
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(gates AS regclass), given.role);
        EXECUTE format('GRANT %s ON %s TO %s', given.privilege, CAST(arrivals AS regclass), given.role);
    END LOOP;
    FOR given IN
        SELECT 'INSERT' AS privilege,
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END AS role
        FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
        WHERE relation.oid = jobs AND acl.grantee <> relation.relowner AND acl.privilege_type = 'INSERT'
        UNION
        SELECT 'INSERT',
               CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE CAST(CAST(acl.grantee AS regrole) AS text) END
        FROM pg_attribute AS field, aclexplode(field.attacl) AS acl
        WHERE field.attrelid = jobs AND field.attname = 'args' AND acl.privilege_type = 'INSERT'
    LOOP
        EXECUTE format('GRANT INSERT (state, exclusive, exclusive_slots, strict, limits, gate) ON %s TO %s',
                       CAST(jobs AS regclass), given.role);
        EXECUTE format('GRANT INSERT (gate) ON %s TO %s', CAST(arrivals AS regclass), given.role);
        EXECUTE format('GRANT SELECT (name, state, info, lease_until, registered_at) ON %s TO %s',
                       CAST(workers AS regclass), given.role);
    END LOOP;
END $$;

-- built concurrently: who waits where, and who has a turn; jobs that need none are in neither
CREATE INDEX jobs_gate ON fencerow.jobs (gate, priority DESC, run_at, id)
    WHERE state = 'waiting' AND gate IS NOT NULL;
CREATE INDEX jobs_turned ON fencerow.jobs (exclusive) INCLUDE (exclusive_slots)
    WHERE state IN ('queued', 'running') AND exclusive IS NOT NULL;
CREATE INDEX jobs_limited ON fencerow.jobs USING gin (limits)
    WHERE state IN ('queued', 'running') AND limits IS NOT NULL;
CREATE INDEX jobs_passed ON fencerow.jobs (gate, queue, turned_at)
    WHERE state = 'waiting' AND gate IS NOT NULL AND turned_at IS NOT NULL;
