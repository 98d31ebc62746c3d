-- Suspending and waking: from running to waiting at no place, until what the job waits for has come. What that is, wings know.
-- No wake-up is lost, because both sides lock the job's row in an earlier statement than the one that looks. Whoever suspends
-- it moves the row, and a later statement looks whether what it waits for is there already. Whoever wakes it locks the row,
-- writes what it waits for, and then looks whether it is suspended.

-- name: suspend
-- Let running jobs wait for something that a wing has noted. Their turns are free, and nothing of their budgets is spent.
-- Guard: still running, under this holder, in this attempt, and nobody asked for a cancel.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
outcome AS MATERIALIZED (
    SELECT o.* FROM {{outcomes}} AS o (id uuid, attempt bigint, detail text)
),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = 'waiting',
        {{where it waits}} = NULL,
        suspect = false,
        holder = NULL,
        deadline_at = NULL
    FROM outcome, clock
    WHERE {{fence of outcome}}
      AND job.cancel_requested_at IS NULL
    RETURNING job.id, job.attempt, job.claimed_at, job.state, outcome.detail, clock.now AS at{{job.columns of the moved}}
){{when jobs wait again}},
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.at, 'suspended', CAST(:holder AS text),
           json_build_object('claimed_at_us', fencerow.us(moved.claimed_at), 'detail', CAST(moved.detail AS json))
    FROM moved
)
SELECT CAST(id AS text), (false{{who needs a turn}}) FROM moved;

-- name: suspend_new
-- Let jobs wait for something of a wing before their first attempt.
-- Guard: not ended, and never claimed. Only ids that this transaction has inserted are passed in: nobody has seen them queued.
UPDATE fencerow.jobs AS job
SET state = 'waiting',
    {{where it waits}} = NULL
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state IN ('waiting', 'queued')
  AND job.attempt = 0
RETURNING job.id;

-- name: lock_waiters
-- Lock jobs before what they wait for is written, in sorted order. Whoever suspends one of them meanwhile waits, and then
-- finds it written. Those that have not ended are told, each with its state, its attempt, and whether it is suspended.
SELECT CAST(job.id AS text), job.state, job.attempt, {{is suspended}}
FROM fencerow.jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
ORDER BY job.id
FOR UPDATE;

-- name: lock_free_waiters
-- The same for many jobs. Rows that a stranger has locked are left: whoever locks them looks later, or a sweep does.
SELECT CAST(job.id AS text), job.state, job.attempt, {{is suspended}}
FROM fencerow.jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
ORDER BY job.id
FOR UPDATE SKIP LOCKED;

-- name: wake
-- Queue suspended jobs: with :anyway all of these, else those of which a wing says that the wait is over. One that needs a
-- turn waits for it at its place instead. They are due now, or when a person has said since.
-- Guard: suspended. The rows are locked by now.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = CASE WHEN {{where it waits first}} IS NULL THEN 'queued' ELSE 'waiting' END,
        {{where it waits}} = {{where it waits first}},
        run_at = greatest(job.run_at, clock.now)
    FROM clock
    WHERE job.id = ANY(CAST(:ids AS uuid[]))
      AND {{is suspended}}
      AND (CAST(:anyway AS integer) = 1{{whose wait is over}})
    RETURNING job.id, job.attempt, job.state, job.queue, job.priority, job.run_at, fencerow.lane(job), clock.now AS at{{job.columns of the moved}}
){{when jobs wait again}},
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
    SELECT moved.id, moved.attempt, moved.at, 'woken', CAST(:actor AS text) FROM moved
)
SELECT CAST(id AS text), queue, priority, fencerow.us(run_at), state = 'waiting', lane FROM moved;
