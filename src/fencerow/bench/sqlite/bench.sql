-- What the bench says to the database by itself: filling tables, and the raw limits beside which it prints.

-- fragment: columns of a job
-- What a job has at least.
id, queue, name, run_at, attempts_max, crashes_max, snoozes_max, timeout_s, submitted_at, args_bytes, args

-- name: bench_fill
-- So many jobs of one queue, their ids in order after `first`, due after `delay_s`.
INSERT INTO fencerow.jobs ({{columns of a job}})
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :count)
SELECT printf('%08x-0000-7000-8000-%012x', :first, n), :queue, 'noop',
       fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER), 3, 3, 48, 900, fencerow.now(), 7, '{"t":0}'
FROM number;

-- name: bench_fill_finished
-- So many jobs that succeeded just now.
INSERT INTO fencerow.finished_jobs ({{columns of a job}}, state, attempt, ended_at, result)
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :count)
SELECT printf('%08x-0000-7000-8000-%012x', :first, n), 'bench', 'noop', fencerow.now(), 3, 3, 48, 900,
       fencerow.now(), 7, '{"t":0}', 'succeeded', 1, fencerow.now(), 'null'
FROM number;

-- name: bench_sleep
-- All queued jobs of this queue sleep for a week, as if their attempts had come to that.
INSERT INTO fencerow.job_waits (job_id, name, attempt, until, look_at, since)
SELECT job.id, 'sleep', 0, fencerow.now() + 604800000000, fencerow.now() + 604800000000, fencerow.now()
FROM fencerow.jobs AS job
WHERE job.queue = :queue AND job.state = 'queued';
UPDATE fencerow.jobs SET state = 'waiting' WHERE queue = :queue AND state = 'queued';

-- name: bench_steps
-- So many remembered steps of jobs that are gone.
INSERT INTO fencerow.job_steps (job_id, name, kind, seq, result, attempt, at)
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :count)
SELECT lower(hex(randomblob(16))), 'step', 'step', 1, '1', 1, fencerow.now() FROM number;

-- name: bench_due
-- So many schedules are due now.
UPDATE fencerow.schedules SET next_at = fencerow.now()
WHERE name IN (SELECT first.name FROM fencerow.schedules AS first ORDER BY first.name LIMIT :count);

-- name: bench_clear
-- Empty the scratch tables.
DELETE FROM fencerow.jobs;
DELETE FROM fencerow.finished_jobs;

-- name: bench_vacuum
-- Nothing is left behind here that a claim would walk over.
SELECT 1;

-- name: bench_journal
PRAGMA journal_mode;

-- name: raw_insert
-- One job and nothing else.
INSERT INTO fencerow.jobs ({{columns of a job}})
VALUES (:id, 'raw', 'noop', :now_us, 3, 3, 48, 900, :now_us, 7, :args);

-- name: raw_claim
-- A claim with none of our guards but the state.
UPDATE fencerow.jobs
SET state = 'running',
    attempt = attempt + 1,
    holder = :holder,
    claimed_at = :now_us
WHERE id IN (
        SELECT queued.id
        FROM fencerow.jobs AS queued
        WHERE queued.queue = :queue
          AND queued.priority = 0
          AND queued.state = 'queued'
          AND queued.lane = ''
          AND queued.run_at <= :now_us
        ORDER BY queued.run_at, queued.id
        LIMIT :limit
    )
RETURNING id, args;

-- name: raw_delete
DELETE FROM fencerow.jobs WHERE id IN (SELECT value FROM json_each(:ids));
