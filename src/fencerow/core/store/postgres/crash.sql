-- A job that takes its process down. Only a death that can be laid at one job's door counts a crash: that of its own
-- child process, told here by the worker that had started it, or that of a worker in which it ran alone (see reclaim).

-- name: crash
-- Count a crash of attempts whose child process died, and give their jobs back as suspects, or end them when the crash
-- budget is spent. Finals are moved by archive in the same transaction.
-- Guard: still running, under this holder, in this attempt.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
outcome AS MATERIALIZED (
    SELECT o.*
    FROM {{outcomes}} AS o (id uuid, attempt bigint, delay_s double precision, reason text)
),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
                     WHEN job.crashes + 1 >= job.crashes_max THEN 'failed'
                     WHEN (false{{whose turn is over}}) THEN 'waiting'
                     ELSE 'queued' END,
        {{where it waits}} = CASE WHEN job.cancel_requested_at IS NULL AND job.crashes + 1 < job.crashes_max
                     AND (false{{whose turn is over}}) THEN {{where it waits first}} END,
        crashes = job.crashes + 1,
        suspect = true,
        run_at = clock.now + fencerow.seconds(outcome.delay_s),
        error = CASE WHEN job.crashes + 1 >= job.crashes_max AND job.cancel_requested_at IS NULL
                     THEN json_build_object('type', 'CrashBudgetSpent', 'code', 'crashes_exhausted', 'message',
                                            'crash ' || (job.crashes + 1) || ' of ' || job.crashes_max || ': ' || outcome.reason)
                     ELSE job.error END,
        ended_at = CASE WHEN job.cancel_requested_at IS NOT NULL
                          OR job.crashes + 1 >= job.crashes_max THEN clock.now END,
        holder = CASE WHEN job.cancel_requested_at IS NOT NULL
                        OR job.crashes + 1 >= job.crashes_max THEN job.holder END,
        deadline_at = NULL
    FROM outcome, clock
    WHERE {{fence of outcome}}
    RETURNING job.id, job.state, job.queue, job.priority, job.run_at, job.attempt, job.claimed_at, job.crashes,
              outcome.reason, clock.now AS at{{job.columns of the moved}}
){{when jobs wait again}},
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.at, 'crashed', CAST(:holder AS text),
           json_build_object('claimed_at_us', fencerow.us(moved.claimed_at), 'became', moved.state,
                             'crashes', moved.crashes, 'reason', moved.reason)
    FROM moved
)
SELECT id, state, queue, priority, fencerow.us(run_at), attempt FROM moved;

-- name: note_alone
-- Note before a suspect starts that nothing else runs in its worker: if that worker dies, reclaim counts it a crash.
-- Guard: the fence.
{{job held by the fence}}
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
SELECT held.id, held.attempt, fencerow.now(), 'alone', CAST(:holder AS text)
FROM held
RETURNING job_id;
