-- Moves that people and clocks make: cancel, expire, revive, delete.

-- name: cancel_idle
-- Cancel jobs that nobody runs. The rows are moved by archive in the same transaction.
-- Guard: waiting or queued; a claim that came first makes this change nothing.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = 'cancelled',
        cancel_requested_at = COALESCE(job.cancel_requested_at, clock.now),
        cancel_requested_by = COALESCE(job.cancel_requested_by, CAST(:actor AS text)),
        {{where it waits}} = NULL,
        ended_at = clock.now
    FROM clock
    WHERE job.id = ANY(CAST(:ids AS uuid[]))
      AND job.state IN ('waiting', 'queued')
    RETURNING job.id, job.attempt, job.ended_at
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.ended_at, 'cancelled', CAST(:actor AS text), json_build_object('reason', CAST(:reason AS text))
    FROM moved
)
SELECT id FROM moved;

-- name: ask_cancel
-- Ask for the cancel of running jobs; their holders learn it with the next renewal at the latest.
-- Guard: running. Asking again keeps the first request.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
asked AS (
    UPDATE fencerow.jobs AS job
    SET cancel_requested_at = COALESCE(job.cancel_requested_at, clock.now),
        cancel_requested_by = COALESCE(job.cancel_requested_by, CAST(:actor AS text))
    FROM clock
    WHERE job.id = ANY(CAST(:ids AS uuid[]))
      AND job.state IS NOT DISTINCT FROM 'running'
    RETURNING job.id, job.attempt, job.holder, clock.now AS at
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT asked.id, asked.attempt, asked.at, 'cancel_requested', CAST(:actor AS text), json_build_object('reason', CAST(:reason AS text))
    FROM asked
)
SELECT id, holder FROM asked;

-- name: expire
-- End jobs for which nobody waits any more. The rows are moved by archive in the same transaction.
-- Guard: waiting or queued, and past expires_at; locked rows are left for the next sweep.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = 'failed',
        error = json_build_object('type', 'Expired', 'code', 'expired', 'message', 'nobody waits for this job any more'),
        {{where it waits}} = NULL,
        ended_at = clock.now
    FROM clock
    WHERE job.id = ANY(ARRAY(
            SELECT due.id
            FROM fencerow.jobs AS due
            WHERE due.state IN ('waiting', 'queued')
              AND due.expires_at <= (SELECT fencerow.now())
            ORDER BY due.expires_at
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
      AND (job.state IS NOT DISTINCT FROM 'waiting' OR job.state IS NOT DISTINCT FROM 'queued')
      AND job.expires_at <= clock.now
    RETURNING job.id, job.attempt, job.ended_at
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
    SELECT moved.id, moved.attempt, moved.ended_at, 'expired', CAST(:actor AS text) FROM moved
)
SELECT id FROM moved;

-- fragment: revivable
-- Finished jobs that may be queued again.
-- Guard: no ephemeral job that succeeded; its id is spent, so a repeated submit must not find it live. None that is live at
-- the same time. And where an instant is given none that has ended later: it is not the end that somebody saw.
job.id = ANY(CAST(:ids AS uuid[]))
  AND NOT (job.ephemeral AND job.state = 'succeeded')
  AND (CAST(:ended_by AS bigint) IS NULL OR job.ended_at <= fencerow.at(CAST(:ended_by AS bigint)))
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS live WHERE live.id = job.id)

-- name: lock_finished
-- Lock finished jobs before their keys are looked at, so that a purge or a second revive waits.
SELECT job.id, job.scope, job.key,
       CAST({{what must end before it is revived}} AS text)
FROM fencerow.finished_jobs AS job
WHERE {{revivable}}
FOR UPDATE;

-- name: keep_key
-- Stop the lifetime of the keys of revived jobs.
-- Guard: the key still belongs to this job.
UPDATE fencerow.keys AS owned
SET expires_at = NULL
FROM json_to_recordset(CAST(:keys AS json)) AS wanted (scope text, key text, job_id uuid)
WHERE owned.scope = wanted.scope AND owned.key = wanted.key AND owned.job_id = wanted.job_id
RETURNING owned.job_id;

-- name: revive
-- Put finished jobs back into their queues: budgets start anew, the attempt goes on, so no old attempt can touch them.
-- Guard: finished, and no other job must end before; and that a trigger of the user's leaves none of them out, which would be
-- in neither table. A person asks for this; the system's own repetition is a retry.
-- A job that needs turns waits for them again. What a wing takes back of the end that
-- was is said there.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
revived AS (
    DELETE FROM fencerow.finished_jobs AS job
    WHERE job.id = ANY(CAST(:ids AS uuid[]))
      AND COALESCE(job.state, '') IN ('succeeded', 'failed', 'cancelled')  -- no condition of an index: found by their ids
      AND {{what must end before it is revived}} IS NULL
    RETURNING job.*
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT revived.id, revived.attempt, clock.now, 'revived', CAST(:actor AS text),
           json_build_object('was', revived.state, 'reason', CAST(:reason AS text), 'ended_at_us', fencerow.us(revived.ended_at))
    FROM revived CROSS JOIN clock
)
{{when jobs are revived}},
queued AS (
INSERT INTO fencerow.jobs AS job (
    id, queue, name, state, priority, awaited, run_at, attempt, {{budgets}},
    retention_s, scope, key, submitted_at, submitted_by, revived_at, args_bytes, args, options, tags, metadata, headers,
    ephemeral, subscribed, {{where it waits}}{{columns that a submit writes}}
)
SELECT
    id, queue, name, CASE WHEN (false{{who needs a turn}}) THEN 'waiting' ELSE 'queued' END,
    priority, awaited, clock.now, attempt, {{budgets}},
    retention_s, scope, key, submitted_at, submitted_by, clock.now, args_bytes, args, options, tags, metadata, headers,
    ephemeral, subscribed, {{where it waits first}}{{columns that a submit writes}}
FROM revived AS job CROSS JOIN clock
RETURNING id, queue, priority, fencerow.us(run_at) AS run_at_us, state = 'waiting' AS waits, fencerow.lane(job) AS lane
)
SELECT queued.id, queued.queue, queued.priority, queued.run_at_us, queued.waits, queued.lane
FROM revived LEFT JOIN queued ON queued.id = revived.id
WHERE queued.id IS NOT NULL OR fencerow.refuse_left_out();

-- name: delete
-- Remove finished jobs; forget_notes follows in the same transaction. Their keys live on until their own expiry.
-- Guard: finished; a revive that came first makes this change nothing.
DELETE FROM fencerow.finished_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
RETURNING job.id;

-- name: forget_notes
-- Remove what was noted about jobs that this transaction has removed.
WITH events AS (DELETE FROM fencerow.job_events AS note WHERE note.job_id = ANY(CAST(:ids AS uuid[]))),
logs AS (DELETE FROM fencerow.job_logs AS note WHERE note.job_id = ANY(CAST(:ids AS uuid[])))
DELETE FROM fencerow.job_progress AS note WHERE note.job_id = ANY(CAST(:ids AS uuid[]));
