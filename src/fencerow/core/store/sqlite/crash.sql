-- A job that takes its process down. Only a death that can be laid at one job's door counts a crash: that of its own
-- child process, told here by the worker that had started it, or that of a worker in which it ran alone (see reclaim).

-- name: crash
-- Count a crash of attempts whose child process died, and give their jobs back as suspects, or end them when the crash
-- budget is spent. Finals are moved by archive in the same transaction.
-- Guard: still running, under this holder, in this attempt.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'crashed', :holder, json_object('claimed_at_us', job.claimed_at,
       'became', CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
                      WHEN job.crashes + 1 >= job.crashes_max THEN 'failed'
                      ELSE 'queued' END,
       'crashes', job.crashes + 1, 'reason', json_extract(o.value, '$.reason'))
{{outcomes under the fence}};
UPDATE fencerow.jobs
SET state = CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
                 WHEN crashes + 1 >= crashes_max THEN 'failed'
                 WHEN (0{{whose turn is over}}) THEN 'waiting'
                 ELSE 'queued' END,
    {{where it waits}} = CASE WHEN cancel_requested_at IS NULL AND crashes + 1 < crashes_max AND (0{{whose turn is over}})
                THEN {{where it waits first}} END,
    crashes = crashes + 1,
    suspect = 1,
    run_at = fencerow.now() + CAST(json_extract(o.value, '$.delay_s') * 1000000 AS INTEGER),
    error = CASE WHEN crashes + 1 >= crashes_max AND cancel_requested_at IS NULL
                 THEN json_object('type', 'CrashBudgetSpent', 'code', 'crashes_exhausted', 'message',
                                  'crash ' || (crashes + 1) || ' of ' || crashes_max || ': ' || json_extract(o.value, '$.reason'))
                 ELSE error END,
    ended_at = CASE WHEN cancel_requested_at IS NOT NULL OR crashes + 1 >= crashes_max THEN fencerow.now() END,
    holder = CASE WHEN cancel_requested_at IS NOT NULL OR crashes + 1 >= crashes_max THEN holder END,
    deadline_at = NULL
{{outcomes under the fence of the row}}
RETURNING id, state, queue, priority, run_at, attempt;
{{when outcomes wait again}};

-- name: note_alone
-- Note before a suspect starts that nothing else runs in its worker: if that worker dies, reclaim counts it a crash.
-- Guard: the fence.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
SELECT job.id, job.attempt, fencerow.now(), 'alone', :holder
FROM fencerow.jobs AS job
WHERE {{fence}}
RETURNING job_id;
