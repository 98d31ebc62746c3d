-- What a run remembers. Each row is made by selecting from the job with the fence.

-- name: recall_steps
-- Whether the attempt may remember anything: no row: it no longer holds the job; true: the job is ephemeral; and the time.
SELECT job.ephemeral, fencerow.now()
FROM fencerow.jobs AS job
WHERE job.id = :id AND job.state = 'running' AND job.holder = :holder AND job.attempt = :attempt;

-- name: steps_of
-- What is remembered of a job, in the order in which it was asked for.
SELECT step.name, step.kind, step.seq, step.beside, step.result, step.attempt, step.at, step.took_s
FROM fencerow.job_steps AS step
WHERE step.job_id = :id
ORDER BY step.seq, step.name;

-- name: remembered_step
-- What an attempt that holds the job has remembered under this name. Guard: the fence.
SELECT step.result
FROM fencerow.job_steps AS step
JOIN fencerow.jobs AS job ON job.id = step.job_id
WHERE step.name = :name
  AND job.id = :id AND job.state = 'running' AND job.holder = :holder AND job.attempt = :attempt;

-- name: remember_step
-- Remember a result. Guard: the fence. No row: the attempt no longer holds the job, or has remembered it before.
INSERT INTO fencerow.job_steps (job_id, name, kind, seq, beside, result, attempt, at, took_s)
SELECT job.id, :name, :kind, :seq, :beside, :result, job.attempt, fencerow.now(), :took_s
FROM fencerow.jobs AS job
WHERE job.id = :id AND job.state = 'running' AND job.holder = :holder AND job.attempt = :attempt
ON CONFLICT (job_id, name) DO NOTHING
RETURNING name;

-- name: forget_steps
-- Forget what a job remembers from this place on. Guard: the job is finished, so no attempt reads it.
DELETE FROM fencerow.job_steps
WHERE job_id = :id
  AND seq >= :seq
  AND EXISTS (SELECT 1 FROM fencerow.finished_jobs AS job WHERE job.id = :id)
RETURNING name;

-- name: forget_waits
-- The same for what it waited for: its times begin anew. What was taken of its signals is gone with the steps that took it, and so
-- are the questions that people answered by these: a person may be asked again.
DELETE FROM fencerow.job_waits WHERE job_id = :id;
DELETE FROM fencerow.job_approvals
WHERE id IN (SELECT sent.id FROM fencerow.job_signals AS sent
             WHERE sent.job_id = :id AND sent.taken_as IN (SELECT value FROM json_each(:names)));
DELETE FROM fencerow.job_signals
WHERE job_id = :id
  AND taken_as IN (SELECT value FROM json_each(:names));

-- name: remembering_jobs_after
-- How many of the next jobs after this one, in the order of their ids, have anything here, and the last of them.
SELECT count(*), max(few.job_id)
FROM (SELECT job_id FROM (SELECT step.job_id FROM fencerow.job_steps AS step WHERE step.job_id > :after
                          ORDER BY step.job_id LIMIT :limit)
      UNION
      SELECT job_id FROM (SELECT wait.job_id FROM fencerow.job_waits AS wait WHERE wait.job_id > :after
                          ORDER BY wait.job_id LIMIT :limit)
      UNION
      SELECT job_id FROM (SELECT sent.job_id FROM fencerow.job_signals AS sent WHERE sent.job_id > :after
                          ORDER BY sent.job_id LIMIT :limit)
      UNION
      SELECT job_id FROM (SELECT asked.job_id FROM fencerow.job_approvals AS asked WHERE asked.job_id > :after
                          ORDER BY asked.job_id LIMIT :limit)
      ORDER BY job_id LIMIT :limit) AS few;

-- fragment: of a job that is gone
-- Of those after one id and up to another: neither live nor finished.
job_id > :after
AND job_id <= :last
AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = job_id)

-- name: purge_steps
-- Remove what is kept here of jobs that are gone. Guard: they are gone.
DELETE FROM fencerow.job_steps WHERE {{of a job that is gone}} RETURNING job_id;
DELETE FROM fencerow.job_waits WHERE {{of a job that is gone}} RETURNING job_id;
DELETE FROM fencerow.job_signals WHERE {{of a job that is gone}} RETURNING job_id;
DELETE FROM fencerow.job_approvals WHERE {{of a job that is gone}} RETURNING job_id;
