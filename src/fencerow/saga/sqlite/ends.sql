-- What an end without success writes: the compensation is a job from the same script on, or the job has not ended.

-- at: when jobs have ended
-- The job that undoes the remembered steps of one that ended without success. Its timeline names it.
INSERT INTO fencerow.jobs (
    id, queue, name, priority, run_at, {{budgets}}, retention_s, submitted_at,
    submitted_by, args_bytes, args, options, tags, headers, subscribed
)
SELECT saga.undo_id, saga.job ->> '$.template.queue', saga.job ->> '$.template.name', saga.job ->> '$.template.priority',
       ended.ended_at, {{budgets in a document}}, saga.job ->> '$.template.retention_s',
       ended.ended_at, saga.job ->> '$.template.submitted_by', saga.job ->> '$.args_bytes', saga.job ->> '$.args',
       saga.job ->> '$.template.options', ended.tags, ended.headers,
       EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes = 1)
FROM fencerow.ended AS ended
JOIN fencerow.sagas AS saga ON saga.job_id = ended.id AND saga.ended_at IS NULL
JOIN json_each(json_array(saga.job -> '$.template'))
WHERE ended.state <> 'succeeded'
ON CONFLICT (id) DO NOTHING;
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, detail)
SELECT ended.id, ended.attempt, ended.ended_at, 'compensating', json_object('job', saga.undo_id)
FROM fencerow.ended AS ended
JOIN fencerow.sagas AS saga ON saga.job_id = ended.id AND saga.ended_at IS NULL
WHERE ended.state <> 'succeeded';
UPDATE fencerow.sagas AS saga
SET ended_at = ended.ended_at
FROM fencerow.ended AS ended
WHERE saga.job_id = ended.id
  AND saga.ended_at IS NULL
  AND ended.state <> 'succeeded';

-- at: whose end is awaited
-- Its compensation is queued: its end is announced, so that a worker tells of that at once.
EXISTS (SELECT 1 FROM fencerow.sagas AS saga WHERE saga.job_id = ended.id AND saga.ended_at = ended.ended_at)

-- at: what must end before it is revived
-- A job and its compensation never run at once: the one does by its keys what the other undoes by them. Of both in one
-- statement the compensation goes first.
(SELECT CASE WHEN saga.job_id = job.id THEN saga.undo_id ELSE saga.job_id END AS other
 FROM fencerow.sagas AS saga
 WHERE (saga.job_id = job.id OR saga.undo_id = job.id)
   AND saga.ended_at IS NOT NULL
   AND (EXISTS (SELECT 1 FROM fencerow.jobs AS live
                WHERE live.id = CASE WHEN saga.job_id = job.id THEN saga.undo_id ELSE saga.job_id END)
        OR (saga.job_id = job.id
            AND saga.undo_id IN (SELECT value FROM json_each(:ids))
            AND EXISTS (SELECT 1 FROM fencerow.finished_jobs AS asked WHERE asked.id = saga.undo_id)))
 LIMIT 1)

-- at: when jobs are revived
-- One whose steps were undone begins anew: it forgets them, once for each compensation, with the signals that they took and the
-- questions that were answered: its people are asked again.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind)
SELECT revived.id, revived.attempt, fencerow.now(), 'begins_anew'
FROM fencerow.revived AS revived
WHERE EXISTS (SELECT 1 FROM fencerow.sagas AS saga
              WHERE saga.job_id = revived.id AND saga.ended_at IS NOT NULL AND saga.anew = 0);
DELETE FROM fencerow.job_steps
WHERE job_id IN (SELECT revived.id FROM fencerow.revived AS revived
                 JOIN fencerow.sagas AS saga ON saga.job_id = revived.id AND saga.ended_at IS NOT NULL AND saga.anew = 0);
DELETE FROM fencerow.job_waits
WHERE job_id IN (SELECT revived.id FROM fencerow.revived AS revived
                 JOIN fencerow.sagas AS saga ON saga.job_id = revived.id AND saga.ended_at IS NOT NULL AND saga.anew = 0);
DELETE FROM fencerow.job_approvals
WHERE id IN (SELECT sent.id FROM fencerow.job_signals AS sent
             JOIN fencerow.revived AS revived ON revived.id = sent.job_id
             JOIN fencerow.sagas AS saga ON saga.job_id = revived.id AND saga.ended_at IS NOT NULL AND saga.anew = 0
             WHERE sent.taken_as IS NOT NULL);
DELETE FROM fencerow.job_signals
WHERE taken_as IS NOT NULL
  AND job_id IN (SELECT revived.id FROM fencerow.revived AS revived
                 JOIN fencerow.sagas AS saga ON saga.job_id = revived.id AND saga.ended_at IS NOT NULL AND saga.anew = 0);
UPDATE fencerow.sagas
SET anew = 1
WHERE ended_at IS NOT NULL
  AND anew = 0
  AND job_id IN (SELECT revived.id FROM fencerow.revived AS revived);
