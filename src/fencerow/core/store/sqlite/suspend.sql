-- Suspending and waking: from running to waiting at no place, until what the job waits for has come. What that is, wings know.
-- No wake-up is lost: the file has one writer, so nothing is written between the move and the look.

-- name: suspend
-- Let running jobs wait for something that a wing has noted. Their turns are free, and nothing of their budgets is spent.
-- Guard: still running, under this holder, in this attempt, and nobody asked for a cancel.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'suspended', :holder,
       json_object('claimed_at_us', job.claimed_at, 'detail', json(json_extract(o.value, '$.detail')))
{{outcomes under the fence}}
  AND job.cancel_requested_at IS NULL;
UPDATE fencerow.jobs
SET state = 'waiting',
    {{where it waits}} = NULL,
    suspect = 0,
    holder = NULL,
    deadline_at = NULL
{{outcomes under the fence of the row}}
  AND fencerow.jobs.cancel_requested_at IS NULL
RETURNING id, (0{{who needs a turn}});
{{when outcomes wait again}};

-- name: suspend_new
-- Let jobs wait for something of a wing before their first attempt.
-- Guard: not ended, and never claimed. Only ids that this transaction has inserted are passed in: nobody has seen them queued.
UPDATE fencerow.jobs
SET state = 'waiting',
    {{where it waits}} = NULL
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state IN ('waiting', 'queued')
  AND attempt = 0
RETURNING id;

-- name: lock_waiters
-- Those of these jobs that have not ended, each with its state, its attempt, and whether it is suspended; the write lock is
-- held already.
SELECT job.id, job.state, job.attempt, {{is suspended}}
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
ORDER BY job.id;

-- name: lock_free_waiters
-- The same for many jobs. On PostgreSQL it leaves those that a stranger has locked.
SELECT job.id, job.state, job.attempt, {{is suspended}}
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
ORDER BY job.id;

-- fragment: suspended jobs to wake
-- With :anyway all of these, else those of which a wing says that the wait is over.
job.id IN (SELECT value FROM json_each(:ids))
  AND {{is suspended}}
  AND (:anyway = 1{{whose wait is over}})

-- name: wake
-- Queue suspended jobs: with :anyway all of these, else those of which a wing says that the wait is over. One that needs a
-- turn waits for it at its place instead. They are due now, or when a person has said since.
-- Guard: suspended.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
SELECT job.id, job.attempt, fencerow.now(), 'woken', :actor
FROM fencerow.jobs AS job
WHERE {{suspended jobs to wake}};
{{into the moved}}
SELECT job.id FROM fencerow.jobs AS job WHERE {{suspended jobs to wake}};
UPDATE fencerow.jobs AS job
SET state = CASE WHEN {{where it waits first}} IS NULL THEN 'queued' ELSE 'waiting' END,
    {{where it waits}} = {{where it waits first}},
    run_at = max(run_at, fencerow.now())
WHERE {{suspended jobs to wake}}
RETURNING id, queue, priority, run_at, state = 'waiting', lane;
{{when jobs wait again}}
{{out of the moved}};
