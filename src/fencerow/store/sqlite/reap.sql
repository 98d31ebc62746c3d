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
-- Take running jobs back from dead holders, as suspects, but for those that had not begun: a worker begins the jobs of
-- one lane, name and time limit in the order in which it claimed them, and no more than its row says before an end is
-- confirmed. What stands further back goes first, so that a batch of this statement leaves the places as they are.
-- A death counts a crash against a job that was noted to run alone there; nobody knows which of several it was, so there
-- it counts nothing. Lest a job that always takes its worker along runs for ever, one that saw :deaths_per_crash times
-- its crash budget of workers die, with no attempt that came to an end in between, fails too. Finals are moved by
-- archive in the same transaction.
-- Guard: running under one of these holders, named by value. The job keeps its place in its lane.
-- The first statement notes what each becomes; the others read it there. An attempt is taken back at most once.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT told.id, told.attempt, fencerow.now(), 'reclaimed', :actor, json_object('holder', told.holder, 'claimed_at_us', told.claimed_at,
       'became', CASE WHEN told.cancel_requested_at IS NOT NULL THEN 'cancelled'
                      WHEN told.waited THEN 'queued'
                      WHEN told.alone AND told.crashes + 1 >= told.crashes_max THEN 'failed'
                      WHEN told.deaths >= told.crashes_max * :deaths_per_crash THEN 'failed'
                      ELSE 'queued' END,
       'crashes', told.crashes + told.alone, 'deaths', told.deaths,
       'begun', json(CASE WHEN told.waited THEN 'false' ELSE 'true' END),
       'message', CASE WHEN told.alone
                       THEN 'crash ' || (told.crashes + 1) || ' of ' || told.crashes_max || ': its worker died while it ran there alone'
                       ELSE told.deaths || ' workers in a row died while they ran it' END)
FROM (SELECT job.id, job.attempt, job.holder, job.claimed_at, job.cancel_requested_at, job.crashes, job.crashes_max,
             EXISTS (SELECT 1
                     FROM fencerow.job_events AS note
                     WHERE note.job_id = job.id AND note.attempt = job.attempt AND note.kind = 'alone') AS alone,
             (SELECT count(*) + 1
              FROM fencerow.job_events AS note
              WHERE note.job_id = job.id AND note.kind = 'reclaimed'
                AND json_extract(note.detail, '$.begun') IS NOT 0
                AND note.id > (SELECT COALESCE(max(ended.id), 0)
                               FROM fencerow.job_events AS ended
                               WHERE ended.job_id = job.id
                                 AND ended.kind IN ('retried', 'snoozed', 'timed_out', 'revived'))) AS deaths,
             NOT job.suspect AND COALESCE(
                 row_number() OVER (PARTITION BY job.holder, job.queue, job.priority, job.name, job.timeout_s
                                    ORDER BY job.claimed_at, job.run_at, job.id)
                 > (SELECT CASE WHEN json_valid(worker.stated) THEN json_extract(worker.stated, '$.begun_max') END
                    FROM fencerow.workers AS worker
                    WHERE worker.id = job.holder), 0) AS waited
      FROM fencerow.jobs AS job
      WHERE job.holder IN (SELECT value FROM json_each(:dead))
        AND job.state = 'running'
      ORDER BY waited DESC, job.id
      LIMIT :limit) AS told;
SELECT job.id, json_extract(note.detail, '$.became'), job.queue, job.priority, job.run_at, job.attempt, job.holder
FROM fencerow.jobs AS job
JOIN fencerow.job_events AS note ON note.job_id = job.id AND note.attempt = job.attempt AND note.kind = 'reclaimed'
WHERE job.holder IN (SELECT value FROM json_each(:dead))
  AND job.state = 'running';
UPDATE fencerow.jobs
SET state = json_extract(note.detail, '$.became'),
    crashes = json_extract(note.detail, '$.crashes'),
    suspect = json_extract(note.detail, '$.begun'),
    error = CASE WHEN json_extract(note.detail, '$.became') = 'failed'
                 THEN json_object('type', 'CrashBudgetSpent', 'code', 'crashes_exhausted',
                                  'message', json_extract(note.detail, '$.message'))
                 ELSE error END,
    ended_at = CASE WHEN json_extract(note.detail, '$.became') <> 'queued' THEN fencerow.now() END,
    holder = CASE WHEN json_extract(note.detail, '$.became') <> 'queued' THEN holder END,
    deadline_at = NULL
FROM fencerow.job_events AS note
WHERE note.job_id = fencerow.jobs.id
  AND note.attempt = fencerow.jobs.attempt
  AND note.kind = 'reclaimed'
  AND fencerow.jobs.holder IN (SELECT value FROM json_each(:dead))
  AND fencerow.jobs.state = 'running';

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
