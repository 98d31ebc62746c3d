-- What the bench says to the database by itself: filling tables, and the raw limits beside which it prints.

-- fragment: columns of a job
-- What a job has at least.
id, queue, name, run_at, attempts_max, crashes_max, snoozes_max, timeout_s, submitted_at, args_bytes, args

-- name: bench_fill
-- So many jobs of one queue, their ids in order after `first`, due after `delay_s`.
INSERT INTO fencerow.jobs ({{columns of a job}})
SELECT CAST(lpad(to_hex(CAST(:first AS bigint) + n), 32, '0') AS uuid), :queue, 'noop',
       clock_timestamp() + make_interval(secs => CAST(:delay_s AS double precision)), 3, 3, 48, 900, clock_timestamp(),
       7, '{"t":0}'
FROM generate_series(1, CAST(:count AS integer)) AS n;

-- name: bench_fill_finished
-- So many jobs that succeeded just now.
INSERT INTO fencerow.finished_jobs ({{columns of a job}}, state, attempt, ended_at, result)
SELECT CAST(lpad(to_hex(CAST(:first AS bigint) + n), 32, '0') AS uuid), 'bench', 'noop', clock_timestamp(), 3, 3, 48, 900,
       clock_timestamp(), 7, '{"t":0}', 'succeeded', 1, clock_timestamp(), 'null'
FROM generate_series(1, CAST(:count AS integer)) AS n;

-- name: bench_sleep
-- All queued jobs of this queue sleep for a week, as if their attempts had come to that.
WITH slept AS (
    UPDATE fencerow.jobs AS job SET state = 'waiting'
    WHERE job.queue = :queue AND job.state = 'queued'
    RETURNING job.id
)
INSERT INTO fencerow.job_waits (job_id, name, attempt, until, look_at, since)
SELECT slept.id, 'sleep', 0, clock_timestamp() + INTERVAL '7 days', clock_timestamp() + INTERVAL '7 days', clock_timestamp()
FROM slept;

-- name: bench_steps
-- So many remembered steps of jobs that are gone.
INSERT INTO fencerow.job_steps (job_id, name, kind, seq, result, attempt, at)
SELECT gen_random_uuid(), 'step', 'step', 1, '1', 1, clock_timestamp() FROM generate_series(1, CAST(:count AS integer));

-- name: bench_due
-- So many schedules are due now.
UPDATE fencerow.schedules AS schedule SET next_at = fencerow.now()
WHERE schedule.name IN (SELECT first.name FROM fencerow.schedules AS first ORDER BY first.name LIMIT CAST(:count AS integer));

-- name: bench_clear
-- Empty the scratch tables.
TRUNCATE fencerow.jobs, fencerow.finished_jobs;

-- name: bench_vacuum
-- What autovacuum would have done by now.
VACUUM ANALYZE fencerow.jobs, fencerow.finished_jobs, fencerow.events;

-- name: bench_workers
-- Who works on this database under the configured schema.
SELECT count(*) FROM fencerow.workers AS worker WHERE worker.state = 'alive' AND worker.lease_until > fencerow.now();

-- name: bench_may_create
-- Whether this role may make a schema in this database, and whether it is a standby.
SELECT has_database_privilege(current_database(), 'CREATE'), pg_is_in_recovery(), current_setting('server_version'),
       current_setting('fsync'), current_setting('synchronous_commit');

-- name: bench_has_workers_table
SELECT to_regclass(CAST(:workers AS text)) IS NOT NULL;

-- name: bench_drop
-- The scratch schema and everything in it.
DROP SCHEMA IF EXISTS fencerow.own_schema CASCADE;

-- name: raw_insert
-- One job and nothing else.
INSERT INTO fencerow.jobs ({{columns of a job}})
VALUES (CAST(:id AS uuid), 'raw', 'noop', clock_timestamp(), 3, 3, 48, 900, clock_timestamp(), 7, CAST(:args AS json));

-- name: raw_insert_many
INSERT INTO fencerow.jobs ({{columns of a job}})
SELECT job.id, 'raw', 'noop', clock_timestamp(), 3, 3, 48, 900, clock_timestamp(), 7, job.args
FROM unnest(CAST(:ids AS uuid[]), CAST(CAST(:args AS text[]) AS json[])) AS job (id, args);

-- name: raw_copy
COPY fencerow.jobs ({{columns of a job}}) FROM STDIN;

-- name: raw_insert_notify
-- The floor of a wake-up: the insert and its announcement in one statement.
WITH made AS (
    INSERT INTO fencerow.jobs ({{columns of a job}})
    VALUES (CAST(:id AS uuid), 'raw', 'noop', clock_timestamp(), 3, 3, 48, 900, clock_timestamp(), 7, CAST(:args AS json))
    RETURNING id
)
SELECT pg_notify(:channel, '') FROM made;

-- name: raw_claim
-- A claim with none of our guards but the row lock and the state.
UPDATE fencerow.jobs AS job
SET state = 'running',
    attempt = job.attempt + 1,
    holder = CAST(:holder AS uuid),
    claimed_at = clock_timestamp()
WHERE job.id = ANY(ARRAY(
        SELECT queued.id
        FROM fencerow.jobs AS queued
        WHERE queued.queue = :queue
          AND queued.priority = 0
          AND queued.state = 'queued'
          AND fencerow.lane(queued) = ''
          AND queued.run_at <= (SELECT clock_timestamp())
        ORDER BY queued.run_at, queued.id
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ))
RETURNING CAST(job.id AS text), CAST(job.args AS text);

-- name: raw_delete
DELETE FROM fencerow.jobs AS job WHERE job.id = ANY(CAST(:ids AS uuid[]));
