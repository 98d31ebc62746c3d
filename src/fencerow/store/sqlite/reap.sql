-- Reaping: what the dead held goes back. Safe in every worker at once: guards repeat state and holder, and dead
-- holders are named by value. All statements of a script see one instant and run under the one write lock, so the
-- same selection yields the same rows.

-- name: die
-- Declare workers dead whose lease has run out. A dead worker can never renew; it must register anew.
-- Guard: alive, and past its lease.
-- Guard of the judge: alive and within its own lease, and not later than what it knew when it judged.
UPDATE fencerow.workers
SET state = 'dead',
    ended_at = fencerow.now()
WHERE state = 'alive'
  AND lease_until < fencerow.now()
  AND EXISTS (SELECT 1 FROM fencerow.workers AS judge
              WHERE judge.id = :judge AND judge.state = 'alive' AND judge.lease_until > fencerow.now())
  AND fencerow.now() < :until_us
RETURNING id;

-- name: lost_holders
-- Holders of running jobs that have no row (the workers' file was lost).
-- A holder registers before it claims, so a snapshot that shows its job shows its row.
SELECT DISTINCT job.holder
FROM fencerow.jobs AS job
WHERE job.state = 'running'
  AND NOT EXISTS (SELECT 1 FROM fencerow.workers AS worker WHERE worker.id = job.holder);

-- name: adopt
-- Give holders that were found without a row a dead one, so that reclaim can name them. They come by value: a statement
-- that writes worker rows must not hold the jobs.
-- Guard: there is no row.
INSERT INTO fencerow.workers (id, state, name, host, pid, lease_s, registered_at, renewed_at, lease_until, ended_at)
SELECT lost.value, 'dead', 'unknown', 'unknown', 0, 0, fencerow.now(), fencerow.now(), fencerow.now(), fencerow.now()
FROM json_each(:holders) AS lost
WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: dead_holders
-- The dead that still hold running jobs. Asked at every sweep, so that a claim which raced its holder's death is found.
SELECT DISTINCT job.holder
FROM fencerow.jobs AS job
JOIN fencerow.workers AS worker ON worker.id = job.holder
WHERE job.state = 'running'
  AND worker.state IN ('dead', 'retired')
LIMIT 100;

-- name: reclaim
-- Take running jobs back from dead holders. A death makes its jobs suspect and counts nothing; a suspect, which ran
-- as the only one there, counts a crash. Finals are moved by archive in the same transaction.
-- Guard: running under one of these holders, named by value. The job keeps its place in its lane.
-- The first statement says what the others do.
SELECT job.id,
       CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
            WHEN job.suspect AND job.crashes + 1 >= job.crashes_max THEN 'failed'
            ELSE 'queued' END,
       job.queue, job.priority, job.run_at, job.attempt, job.holder
FROM fencerow.jobs AS job
WHERE job.holder IN (SELECT value FROM json_each(:dead))
  AND job.state = 'running'
ORDER BY job.id
LIMIT :limit;
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'reclaimed', :actor, json_object('holder', job.holder, 'claimed_at_us', job.claimed_at,
       'became', CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
            WHEN job.suspect AND job.crashes + 1 >= job.crashes_max THEN 'failed'
            ELSE 'queued' END,
       'crashes', job.crashes + job.suspect)
FROM fencerow.jobs AS job
WHERE job.state = 'running'
  AND job.id IN (SELECT found.id
             FROM fencerow.jobs AS found
             WHERE found.holder IN (SELECT value FROM json_each(:dead)) AND found.state = 'running'
             ORDER BY found.id
             LIMIT :limit);
UPDATE fencerow.jobs
SET state = CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
                 WHEN suspect AND crashes + 1 >= crashes_max THEN 'failed'
                 ELSE 'queued' END,
    crashes = crashes + suspect,
    suspect = 1,
    error = CASE WHEN suspect AND crashes + 1 >= crashes_max AND cancel_requested_at IS NULL
                 THEN json_object('type', 'CrashBudgetSpent', 'code', 'crashes_exhausted', 'message',
                                  'its worker died ' || (crashes + 1) || ' times while it ran as the only suspect')
                 ELSE error END,
    ended_at = CASE WHEN cancel_requested_at IS NOT NULL
                      OR suspect AND crashes + 1 >= crashes_max THEN fencerow.now() END,
    holder = CASE WHEN cancel_requested_at IS NOT NULL
                    OR suspect AND crashes + 1 >= crashes_max THEN holder END,
    deadline_at = NULL
WHERE state = 'running'
  AND id IN (SELECT found.id
             FROM fencerow.jobs AS found
             WHERE found.holder IN (SELECT value FROM json_each(:dead)) AND found.state = 'running'
             ORDER BY found.id
             LIMIT :limit);

-- name: time_out
-- End attempts that are past their hard deadline although their holder lives: a hung handler, a hung process.
-- It counts as a failure. Finals are moved by archive in the same transaction.
-- Guard: running, and past deadline_at.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'timed_out', :actor, json_object('claimed_at_us', job.claimed_at,
       'became', CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
                      WHEN job.failures + 1 >= job.attempts_max THEN 'failed'
                      ELSE 'queued' END)
FROM fencerow.jobs AS job
WHERE job.state = 'running'
  AND job.id IN (SELECT late.id
             FROM fencerow.jobs AS late
             WHERE late.state = 'running' AND late.deadline_at < fencerow.now()
             ORDER BY late.deadline_at
             LIMIT :limit);
UPDATE fencerow.jobs
SET state = CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
                 WHEN failures + 1 >= attempts_max THEN 'failed'
                 ELSE 'queued' END,
    failures = failures + 1,
    run_at = fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER),
    error = json_object('type', 'AttemptTimeout', 'code', 'FR-403', 'message',
                        'the attempt was past its hard deadline and its worker did not end it'),
    ended_at = CASE WHEN cancel_requested_at IS NOT NULL
                      OR failures + 1 >= attempts_max THEN fencerow.now() END,
    holder = CASE WHEN cancel_requested_at IS NOT NULL
                    OR failures + 1 >= attempts_max THEN holder END,
    deadline_at = NULL
WHERE state = 'running'
  AND id IN (SELECT late.id
             FROM fencerow.jobs AS late
             WHERE late.state = 'running' AND late.deadline_at < fencerow.now()
             ORDER BY late.deadline_at
             LIMIT :limit)
RETURNING id, state, queue, priority, run_at, attempt;
