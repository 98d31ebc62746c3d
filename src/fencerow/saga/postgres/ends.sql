-- What an end without success writes: the compensation is a job from the same statement on, or the job has not ended.
-- Whoever ends a job so has locked its row in an earlier statement, so this one sees all that its attempt remembered.

-- at: when jobs have ended
-- The job that undoes the remembered steps of one that ended without success. Its timeline names it.
undone AS (
    UPDATE fencerow.sagas AS saga
    SET ended_at = ended.ended_at
    FROM ended
    WHERE saga.job_id = ended.id
      AND saga.ended_at IS NULL
      AND ended.state <> 'succeeded'
    RETURNING saga.undo_id, saga.job, saga.job_id, ended.attempt, ended.ended_at, ended.tags, ended.headers
),
undoing AS (
    INSERT INTO fencerow.jobs (
        id, queue, name, priority, run_at, {{budgets}}, retention_s, submitted_at,
        submitted_by, args_bytes, args, options, tags, headers, subscribed
    )
    SELECT undone.undo_id, given.queue, given.name, given.priority, undone.ended_at, {{given.budgets}},
           given.retention_s, undone.ended_at, given.submitted_by,
           CAST(undone.job ->> 'args_bytes' AS integer), CAST(undone.job ->> 'args' AS json), CAST(given.options AS json),
           undone.tags, undone.headers, EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes)
    FROM undone
    CROSS JOIN LATERAL json_to_record(undone.job -> 'template') AS given (
        queue text, name text, priority smallint, {{budgets with types}},
        retention_s double precision, submitted_by text, options text
    )
    ON CONFLICT (id) DO NOTHING
),
told_of_undoing AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, detail)
    SELECT undone.job_id, undone.attempt, undone.ended_at, 'compensating', json_build_object('job', undone.undo_id)
    FROM undone
)

-- at: whose end is awaited
-- Its compensation is queued: its end is announced, so that a worker tells of that at once.
ended.id IN (SELECT undone.job_id FROM undone)

-- at: what must end before it is revived
-- A job and its compensation never run at once: the one does by its keys what the other undoes by them. Of both in one
-- statement the compensation goes first. The saga is locked: whoever revives the other one waits, and then sees this one.
(SELECT CAST(min(CAST(held.other AS text)) AS uuid)
 FROM (SELECT saga.undo_id, CASE WHEN saga.job_id = job.id THEN saga.undo_id ELSE saga.job_id END AS other
       FROM fencerow.sagas AS saga
       WHERE (saga.job_id = job.id OR saga.undo_id = job.id)
         AND saga.ended_at IS NOT NULL
       FOR UPDATE) AS held
 WHERE EXISTS (SELECT 1 FROM fencerow.jobs AS live WHERE live.id = held.other)
    OR (held.other = held.undo_id
        AND held.other = ANY(CAST(:ids AS uuid[]))
        AND EXISTS (SELECT 1 FROM fencerow.finished_jobs AS asked WHERE asked.id = held.other)))

-- at: when jobs are revived
-- One whose steps were undone begins anew: it forgets them, once for each compensation, with the signals that they took and the
-- questions that were answered: its people are asked again.
begun_anew AS (
    UPDATE fencerow.sagas AS saga
    SET anew = true
    FROM revived
    WHERE saga.job_id = revived.id
      AND saga.ended_at IS NOT NULL
      AND NOT saga.anew
    RETURNING saga.job_id, revived.attempt
),
steps_undone AS (DELETE FROM fencerow.job_steps WHERE job_id IN (SELECT begun_anew.job_id FROM begun_anew)),
waits_undone AS (DELETE FROM fencerow.job_waits WHERE job_id IN (SELECT begun_anew.job_id FROM begun_anew)),
signals_undone AS (
    DELETE FROM fencerow.job_signals
    WHERE taken_as IS NOT NULL
      AND job_id IN (SELECT begun_anew.job_id FROM begun_anew)
    RETURNING id
),
questions_undone AS (DELETE FROM fencerow.job_approvals WHERE id IN (SELECT signals_undone.id FROM signals_undone)),
told_of_beginning AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind)
    SELECT DISTINCT begun_anew.job_id, begun_anew.attempt, (SELECT fencerow.now()), 'begins_anew' FROM begun_anew
)
