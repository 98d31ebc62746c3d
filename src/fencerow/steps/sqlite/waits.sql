-- What jobs wait for, and the signals that are sent to them.

-- at: whose wait is over
-- Its time has come, or a signal that it waits for is there. What an earlier attempt waited for plays no part.
EXISTS (SELECT 1 FROM fencerow.job_waits AS wait
        WHERE wait.job_id = job.id
          AND wait.attempt = job.attempt
          AND (wait.until <= fencerow.now()
               OR EXISTS (SELECT 1 FROM fencerow.job_signals AS sent
                          WHERE sent.job_id = job.id AND sent.name = wait.signal AND sent.taken_as IS NULL)))

-- fragment: held
-- The job, while this attempt holds it.
FROM fencerow.jobs AS job
WHERE job.id = :id AND job.state = 'running' AND job.holder = :holder AND job.attempt = :attempt

-- name: note_wait
-- Write for what the attempt waits. The same wait of an earlier attempt is taken over: its time runs since then. The last
-- column tells whether the time has come.
-- Guard: the fence.
INSERT INTO fencerow.job_waits AS known (job_id, name, attempt, signal, until, look_at, since)
SELECT job.id, :name, job.attempt, :signal,
       COALESCE(:until_us, fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER)),
       COALESCE(:until_us, fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER)), fencerow.now()
{{held}}
ON CONFLICT (job_id, name) DO UPDATE SET attempt = excluded.attempt, look_at = known.until
RETURNING until, COALESCE(until <= fencerow.now(), 0);

-- name: forget_wait
-- The wait is over, and remembered in this transaction.
DELETE FROM fencerow.job_waits
WHERE job_id = :id
  AND name = :name;

-- fragment: first of the signals
-- The first signal of this name that nobody has taken, unless the wait is remembered already.
(SELECT min(first.seq) FROM fencerow.job_signals AS first
 WHERE first.job_id = :id AND first.name = :signal AND first.taken_as IS NULL
   AND NOT EXISTS (SELECT 1 FROM fencerow.job_steps AS known WHERE known.job_id = :id AND known.name = :name))

-- name: take_signal
-- Take the first signal of this name that nobody has taken, and remember it as a step of the run: its data as `data`, so
-- that they are never taken for what is remembered of a wait whose time came.
-- Guard: the fence. A wait that is remembered already takes no other one.
UPDATE fencerow.job_signals
SET taken_as = :name
WHERE seq = {{first of the signals}}
  AND EXISTS (SELECT 1 {{held}});
INSERT INTO fencerow.job_steps (job_id, name, kind, seq, beside, result, attempt, at)
SELECT sent.job_id, :name, 'signal', :seq, :beside, '{"data":' || sent.data || '}', :attempt, fencerow.now()
FROM fencerow.job_signals AS sent
WHERE sent.job_id = :id
  AND sent.name = :signal
  AND sent.taken_as = :name
  AND EXISTS (SELECT 1 {{held}})
ON CONFLICT (job_id, name) DO NOTHING
RETURNING result;

-- name: count_signals
-- How many signals nobody has taken yet, and whether this one is among all that were sent.
SELECT count(*) FILTER (WHERE sent.taken_as IS NULL), COALESCE(max(sent.id = :signal_id), 0)
FROM fencerow.job_signals AS sent
WHERE sent.job_id = :id;

-- name: send_signal
-- Keep a signal for the job. Guard: its id, so that what is sent again is kept once.
INSERT INTO fencerow.job_signals (id, job_id, name, data, sent_by, sent_at)
VALUES (:signal_id, :id, :name, :data, :actor, fencerow.now())
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: due_waits
-- The jobs whose waits are to be looked at, the longest due first, at most :limit waits.
SELECT due.job_id, due.look_at
FROM fencerow.job_waits AS due
WHERE due.look_at <= fencerow.now()
ORDER BY due.look_at
LIMIT :limit;

-- name: free_due_waits
-- The same of jobs that are there: nobody else can have locked one.
SELECT due.job_id, due.look_at
FROM fencerow.job_waits AS due
JOIN fencerow.jobs AS job ON job.id = due.job_id
WHERE due.look_at <= fencerow.now()
ORDER BY due.look_at
LIMIT :limit;

-- name: next_wait
-- In how many seconds the next wait is to be looked at; no row: nobody waits for a time.
SELECT (next.look_at - fencerow.now()) / 1000000.0
FROM fencerow.job_waits AS next
WHERE next.look_at IS NOT NULL
ORDER BY next.look_at
LIMIT 1;

-- name: waits_seen
-- Of those that were looked at, these were under the locks of their jobs: who is suspended was woken; who is not will look for
-- himself. An attempt that waits once more writes it anew. What belongs to a job that has ended is looked at no more either.
UPDATE fencerow.job_waits
SET look_at = NULL
WHERE job_id IN (SELECT value FROM json_each(:looked))
  AND look_at <= fencerow.now()
  AND (job_id IN (SELECT value FROM json_each(:ids))
       OR NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = fencerow.job_waits.job_id))
RETURNING job_id;

-- name: waiting_for
-- What suspended jobs wait for, those first whose time comes first. Of one job, or of all.
SELECT wait.job_id, job.name, job.queue, wait.name, wait.signal, wait.until, wait.since, fencerow.now()
FROM fencerow.job_waits AS wait
JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
WHERE job.state = 'waiting'
  AND job.gate IS NULL
  AND (:id IS NULL OR wait.job_id = :id)
  AND (:signal IS NULL OR wait.signal = :signal)
ORDER BY wait.until IS NULL, wait.until, wait.job_id, wait.name
LIMIT :limit;

-- name: signals_of
-- The signals that were sent to a job, in order.
SELECT sent.id, sent.name, sent.data, sent.sent_by, sent.sent_at, sent.taken_as
FROM fencerow.job_signals AS sent
WHERE sent.job_id = :id
ORDER BY sent.seq;
