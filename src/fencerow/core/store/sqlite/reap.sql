-- Reaping: what the dead held goes back. Safe in every worker at once: guards repeat state and holder, and dead
-- holders are named by value. All statements of a script see one instant and run under the one write lock, so the
-- same selection yields the same rows.

-- fragment: living judge
-- Guard of the judge: alive and within its own lease, and not later than what it knew when it judged.
EXISTS (SELECT 1 FROM fencerow.workers AS judge
            WHERE judge.id = :judge AND judge.state = 'alive' AND judge.lease_until > fencerow.now())
AND fencerow.now() < :until_us

-- name: die
-- Declare workers dead whose lease has run out. A dead worker can never renew; it must register anew.
-- Guard: alive, and past its lease.
-- Guard of the judge: alive and within its own lease, and not later than what it knew when it judged.
UPDATE fencerow.workers
SET state = 'dead',
    ended_at = fencerow.now()
WHERE state = 'alive'
  AND lease_until < fencerow.now()
  AND {{living judge}}
RETURNING id;

-- name: leases_ahead
-- Living workers whose lease ends later than one that were written now: it was written before the clock went back.
SELECT worker.id, worker.renewed_at, worker.lease_s
FROM fencerow.workers AS worker
WHERE worker.state = 'alive'
  AND worker.lease_until > fencerow.now() + CAST(worker.lease_s * 1000000 AS INTEGER)
ORDER BY worker.lease_until DESC
LIMIT 1000;

-- name: die_ahead
-- Declare workers dead whose lease was written before the clock went back: it would hold until the clock returns.
-- The judge has watched each for a whole lease by its own clock, and names the renewal that it saw last.
-- Guard: alive, not renewed since, and its lease still lies ahead of one that were written now.
-- Guard of the judge as in die.
UPDATE fencerow.workers
SET state = 'dead',
    ended_at = fencerow.now()
WHERE state = 'alive'
  AND EXISTS (SELECT 1 FROM json_each(:silent) AS silent
              WHERE json_extract(silent.value, '$[0]') = fencerow.workers.id
                AND json_extract(silent.value, '$[1]') = fencerow.workers.renewed_at)
  AND lease_until > fencerow.now() + CAST(lease_s * 1000000 AS INTEGER)
  AND {{living judge}}
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

-- fragment: became
-- What the note says that the job became.
json_extract(note.detail, '$.became')

-- name: reclaim
-- Take running jobs back from dead holders, as suspects, but for those that had not begun: a worker begins the jobs of
-- one lane, name and time limit in the order in which it claimed them, and no more than its row says before an end is
-- confirmed. What stands further back goes first, so that a batch of this statement leaves the places as they are.
-- A death counts a crash against a job that was noted to run alone there; nobody knows which of several it was, so there
-- it counts nothing. Lest a job that always takes its worker along runs for ever, one that saw :deaths_per_crash times
-- its crash budget of workers die, with no attempt that came to an end in between, fails too. Finals are moved by
-- archive in the same transaction.
-- Guard: running under one of these holders, named by value. The job keeps its place in its lane; one that lies
-- ahead, because the clock went back since, is now.
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
                                 AND ended.kind IN ('retried', 'snoozed', 'suspended', 'timed_out', 'revived'))) AS deaths,
             NOT job.suspect AND COALESCE(
                 row_number() OVER (PARTITION BY job.holder, job.queue, job.priority, job.lane, job.name, job.timeout_s
                                    ORDER BY job.claimed_at, job.run_at, job.id)
                 > (SELECT CASE WHEN json_valid(worker.stated) THEN json_extract(worker.stated, '$.begun_max') END
                    FROM fencerow.workers AS worker
                    WHERE worker.id = job.holder), 0) AS waited
      FROM fencerow.jobs AS job
      WHERE job.holder IN (SELECT value FROM json_each(:dead))
        AND job.state = 'running'
      ORDER BY waited DESC, job.id
      LIMIT :limit) AS told;
SELECT job.id, {{became}}, job.queue, job.priority, min(job.run_at, fencerow.now()),
       job.attempt, job.holder
FROM fencerow.jobs AS job
JOIN fencerow.job_events AS note ON note.job_id = job.id AND note.attempt = job.attempt AND note.kind = 'reclaimed'
WHERE job.holder IN (SELECT value FROM json_each(:dead))
  AND job.state = 'running';
UPDATE fencerow.jobs
SET state = {{became}},
    crashes = json_extract(note.detail, '$.crashes'),
    suspect = json_extract(note.detail, '$.begun'),
    run_at = min(run_at, fencerow.now()),
    error = CASE WHEN {{became}} = 'failed'
                 THEN json_object('type', 'CrashBudgetSpent', 'code', 'crashes_exhausted',
                                  'message', json_extract(note.detail, '$.message'))
                 ELSE error END,
    ended_at = CASE WHEN {{became}} <> 'queued' THEN fencerow.now() END,
    holder = CASE WHEN {{became}} <> 'queued' THEN holder END,
    deadline_at = NULL
FROM fencerow.job_events AS note
WHERE note.job_id = fencerow.jobs.id
  AND note.attempt = fencerow.jobs.attempt
  AND note.kind = 'reclaimed'
  AND fencerow.jobs.holder IN (SELECT value FROM json_each(:dead))
  AND fencerow.jobs.state = 'running';

-- name: time_out
-- End attempts that their own holder calls overdue in its last renewal. It has measured that by the clock of its own
-- process: no clock of the database's decides here, so an outage or a jump makes nobody overdue.
-- What had begun is past its time limit, and its worker could not end it though it had a lease more for that: a hung
-- handler, a blocked event loop. It counts as a failure. What had not begun will never begin there: it keeps its place
-- and counts nothing. Finals are moved by archive in the same transaction.
-- Guard: the holder is alive, and the job is still running under it, in the attempt that it named.
-- The first statement notes what each becomes; the others read it there. An attempt ends at most once.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), CASE WHEN overdue.begun THEN 'timed_out' ELSE 'released' END, :actor,
       json_object('claimed_at_us', job.claimed_at,
                   'became', CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
                                  WHEN overdue.begun AND job.failures + 1 >= job.attempts_max THEN 'failed'
                                  ELSE 'queued' END,
                   'reason', CASE WHEN overdue.begun THEN 'its worker could not end it in time'
                                  ELSE 'its worker did not begin it in time' END)
FROM (SELECT worker.id AS holder, json_extract(said.value, '$[0]') AS id, json_extract(said.value, '$[1]') AS attempt,
             json_extract(said.value, '$[2]') AS begun
      FROM fencerow.workers AS worker, json_each(worker.stated, '$.overdue') AS said
      WHERE worker.state = 'alive') AS overdue
CROSS JOIN fencerow.jobs AS job ON job.id = overdue.id
WHERE job.state = 'running'
  AND job.holder = overdue.holder
  AND job.attempt = overdue.attempt
ORDER BY job.id
LIMIT :limit;
SELECT job.id,
       CASE WHEN note.kind = 'timed_out' AND {{became}} = 'queued' AND (0{{whose turn is over}})
            THEN 'waiting' ELSE {{became}} END, job.queue, job.priority,
       CASE WHEN note.kind = 'timed_out' THEN fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER) ELSE min(job.run_at, fencerow.now()) END,
       job.attempt, job.holder, note.kind = 'timed_out'
FROM fencerow.jobs AS job
JOIN fencerow.job_events AS note ON note.job_id = job.id AND note.attempt = job.attempt
WHERE job.id IN (SELECT json_extract(said.value, '$[0]')
                 FROM fencerow.workers AS worker, json_each(worker.stated, '$.overdue') AS said
                 WHERE worker.state = 'alive')
  AND job.state = 'running'
  AND note.kind IN ('timed_out', 'released');
{{into the moved}}
SELECT job.id
FROM fencerow.workers AS worker, json_each(worker.stated, '$.overdue') AS said
CROSS JOIN fencerow.jobs AS job ON job.id = json_extract(said.value, '$[0]')
JOIN fencerow.job_events AS note ON note.job_id = job.id AND note.attempt = job.attempt AND note.kind = 'timed_out'
WHERE worker.state = 'alive'
  AND job.state = 'running'
  AND job.cancel_requested_at IS NULL;
{{when attempts have failed}}
{{out of the moved}};
UPDATE fencerow.jobs
SET state = CASE WHEN note.kind = 'timed_out' AND {{became}} = 'queued'
                      AND (0{{whose turn is over}})
                 THEN 'waiting' ELSE {{became}} END,
    {{where it waits}} = CASE WHEN note.kind = 'timed_out' AND {{became}} = 'queued'
                     AND (0{{whose turn is over}})
                THEN {{where it waits first}} END,
    failures = failures + (note.kind = 'timed_out'),
    run_at = CASE WHEN note.kind = 'timed_out' THEN fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER)
                  ELSE min(run_at, fencerow.now()) END,
    error = CASE WHEN note.kind = 'timed_out'
                 THEN json_object('type', 'AttemptTimeout', 'code', 'FR-403', 'message',
                                  'the attempt was past its time limit and its worker could not end it')
                 ELSE error END,
    ended_at = CASE WHEN {{became}} <> 'queued' THEN fencerow.now() END,
    holder = CASE WHEN {{became}} <> 'queued' THEN holder END,
    deadline_at = NULL
FROM fencerow.job_events AS note
WHERE note.job_id = fencerow.jobs.id
  AND note.attempt = fencerow.jobs.attempt
  AND note.kind IN ('timed_out', 'released')
  AND fencerow.jobs.id IN (SELECT json_extract(said.value, '$[0]')
                           FROM fencerow.workers AS worker, json_each(worker.stated, '$.overdue') AS said
                           WHERE worker.state = 'alive')
  AND fencerow.jobs.state = 'running';
{{into the moved}}
SELECT job.id
FROM fencerow.workers AS worker, json_each(worker.stated, '$.overdue') AS said
CROSS JOIN fencerow.jobs AS job ON job.id = json_extract(said.value, '$[0]')
WHERE worker.state = 'alive' AND job.state = 'waiting';
{{when jobs wait again}}
{{out of the moved}};
