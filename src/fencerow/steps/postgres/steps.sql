-- What a run remembers. Each row is made by selecting from the job FOR SHARE with the fence: a plain INSERT would let a stale
-- attempt write after a newer claim.

-- name: recall_steps
-- Whether the attempt may remember anything: no row: it no longer holds the job; true: the job is ephemeral; and the time.
SELECT job.ephemeral, fencerow.us((SELECT fencerow.now()))
FROM fencerow.jobs AS job
WHERE job.id = CAST(:id AS uuid)
  AND job.state IS NOT DISTINCT FROM 'running'
  AND job.holder = CAST(:holder AS uuid)
  AND job.attempt = CAST(:attempt AS bigint);

-- name: steps_of
-- What is remembered of a job, in the order in which it was asked for.
SELECT step.name, step.kind, step.seq, step.beside, CAST(step.result AS text), step.attempt, fencerow.us(step.at), step.took_s
FROM fencerow.job_steps AS step
WHERE step.job_id = CAST(:id AS uuid)
ORDER BY step.seq, step.name;

-- name: remembered_step
-- What an attempt that holds the job has remembered under this name. Guard: the fence.
SELECT CAST(step.result AS text)
FROM fencerow.job_steps AS step
JOIN fencerow.jobs AS job ON job.id = step.job_id
WHERE step.name = CAST(:name AS text)
  AND job.id = CAST(:id AS uuid)
  AND job.state IS NOT DISTINCT FROM 'running'
  AND job.holder = CAST(:holder AS uuid)
  AND job.attempt = CAST(:attempt AS bigint);

-- name: remember_step
-- Remember a result. Guard: the fence. No row: the attempt no longer holds the job, or has remembered it before.
WITH held AS (
    SELECT job.id, job.attempt
    FROM fencerow.jobs AS job
    WHERE job.id = CAST(:id AS uuid)
      AND job.state IS NOT DISTINCT FROM 'running'
      AND job.holder = CAST(:holder AS uuid)
      AND job.attempt = CAST(:attempt AS bigint)
    FOR SHARE
)
INSERT INTO fencerow.job_steps (job_id, name, kind, seq, beside, result, attempt, at, took_s)
SELECT held.id, CAST(:name AS text), CAST(:kind AS text), CAST(:seq AS integer), CAST(:beside AS boolean),
       CAST(:result AS json), held.attempt, (SELECT fencerow.now()), CAST(:took_s AS double precision)
FROM held
ON CONFLICT (job_id, name) DO NOTHING
RETURNING name;

-- name: forget_steps
-- Forget what a job remembers from this place on. Guard: the job is finished, so no attempt reads it.
DELETE FROM fencerow.job_steps AS step
WHERE step.job_id = CAST(:id AS uuid)
  AND step.seq >= CAST(:seq AS integer)
  AND EXISTS (SELECT 1 FROM fencerow.finished_jobs AS job WHERE job.id = step.job_id)
RETURNING step.name;

-- name: forget_waits
-- The same for what it waited for: its times begin anew. What was taken of its signals is gone with the steps that took it, and so
-- are the questions that people answered by these: a person may be asked again.
WITH waits AS (DELETE FROM fencerow.job_waits AS wait WHERE wait.job_id = CAST(:id AS uuid)),
asked AS (
    DELETE FROM fencerow.job_approvals AS asked
    WHERE asked.id = ANY(ARRAY(
        SELECT sent.id FROM fencerow.job_signals AS sent
        WHERE sent.job_id = CAST(:id AS uuid) AND sent.taken_as = ANY(CAST(:names AS text[]))
    ))
)
DELETE FROM fencerow.job_signals AS sent
WHERE sent.job_id = CAST(:id AS uuid)
  AND sent.taken_as = ANY(CAST(:names AS text[]));

-- name: remembering_jobs_after
-- How many of the next jobs after this one, in the order of their ids, have anything here, and the last of them.
SELECT count(*), CAST(max(CAST(few.job_id AS text)) AS text)
FROM ((SELECT step.job_id FROM fencerow.job_steps AS step WHERE step.job_id > CAST(:after AS uuid)
       ORDER BY step.job_id LIMIT CAST(:limit AS integer))
      UNION
      (SELECT wait.job_id FROM fencerow.job_waits AS wait WHERE wait.job_id > CAST(:after AS uuid)
       ORDER BY wait.job_id LIMIT CAST(:limit AS integer))
      UNION
      (SELECT sent.job_id FROM fencerow.job_signals AS sent WHERE sent.job_id > CAST(:after AS uuid)
       ORDER BY sent.job_id LIMIT CAST(:limit AS integer))
      UNION
      (SELECT asked.job_id FROM fencerow.job_approvals AS asked WHERE asked.job_id > CAST(:after AS uuid)
       ORDER BY asked.job_id LIMIT CAST(:limit AS integer))
      ORDER BY job_id LIMIT CAST(:limit AS integer)) AS few;

-- fragment: of a job that is gone
-- Of those after one id and up to another: neither live nor finished. OFFSET 0: each is looked up, and none compared with all.
job_id > CAST(:after AS uuid)
AND job_id <= CAST(:last AS uuid)
AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = job_id OFFSET 0)

-- name: purge_steps
-- Remove what is kept here of jobs that are gone. Guard: they are gone.
WITH steps AS (DELETE FROM fencerow.job_steps WHERE {{of a job that is gone}} RETURNING job_id),
waits AS (DELETE FROM fencerow.job_waits WHERE {{of a job that is gone}} RETURNING job_id),
signals AS (DELETE FROM fencerow.job_signals WHERE {{of a job that is gone}} RETURNING job_id),
approvals AS (DELETE FROM fencerow.job_approvals WHERE {{of a job that is gone}} RETURNING job_id)
SELECT DISTINCT CAST(gone.job_id AS text)
FROM (SELECT job_id FROM steps UNION SELECT job_id FROM waits UNION SELECT job_id FROM signals
      UNION SELECT job_id FROM approvals) AS gone;
