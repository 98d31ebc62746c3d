-- What is to be undone of a job: written beside the memory of its steps, read by its compensation.

-- name: put_saga
-- Note the compensation of a job, at its first step that can be undone. In the transaction that remembers the step: the fence
-- holds, and the job's row is locked against its end. Guard: the job has none that is open.
INSERT INTO fencerow.sagas (undo_id, job_id, job, since)
VALUES (CAST(:undo_id AS uuid), CAST(:id AS uuid), CAST(:job AS json), (SELECT fencerow.now()))
ON CONFLICT (job_id) WHERE ended_at IS NULL DO NOTHING;

-- name: put_saga_step
-- Note what undoes a step. A later statement than the one before: a compensation that another step has noted is seen.
INSERT INTO fencerow.saga_steps (undo_id, name, seq, undo, result)
SELECT saga.undo_id, CAST(:name AS text), CAST(:seq AS integer), CAST(:undo AS text), CAST(:result AS json)
FROM fencerow.sagas AS saga
WHERE saga.job_id = CAST(:id AS uuid)
  AND saga.ended_at IS NULL
ON CONFLICT (undo_id, name) DO NOTHING;

-- name: saga_steps_of
-- What a compensation undoes, in that order, and of whose job.
SELECT step.name, step.undo, CAST(step.result AS text), CAST(saga.job_id AS text)
FROM fencerow.saga_steps AS step
JOIN fencerow.sagas AS saga ON saga.undo_id = step.undo_id
WHERE step.undo_id = CAST(:id AS uuid)
ORDER BY step.seq DESC, step.name DESC;

-- name: sagas_of
-- The compensations of a job, or the one that this job is, the newest first.
SELECT CAST(saga.undo_id AS text), CAST(saga.job_id AS text), fencerow.us(saga.ended_at), saga.anew, undoing.state,
       (SELECT count(*) FROM fencerow.saga_steps AS step WHERE step.undo_id = saga.undo_id)
FROM fencerow.sagas AS saga
LEFT JOIN fencerow.all_jobs AS undoing ON undoing.id = saga.undo_id
WHERE saga.job_id = CAST(:id AS uuid)
   OR saga.undo_id = CAST(:id AS uuid)
ORDER BY saga.since DESC, saga.undo_id;

-- name: queued_compensations
-- Those of these jobs that nobody has claimed yet: what a wake-up has to say.
SELECT CAST(undoing.id AS text), undoing.queue, undoing.priority, fencerow.us(undoing.run_at), undoing.lane
FROM fencerow.sagas AS saga
CROSS JOIN LATERAL (SELECT *, fencerow.lane(queued) FROM fencerow.jobs AS queued WHERE queued.id = saga.undo_id OFFSET 0) AS undoing
WHERE saga.job_id = ANY(CAST(:ids AS uuid[]))
  AND undoing.state = 'queued';

-- name: failed_sagas
-- Compensations that have failed for good or were cancelled: what they should undo stands.
SELECT CAST(saga.undo_id AS text), CAST(saga.job_id AS text), undoing.state
FROM fencerow.sagas AS saga
JOIN fencerow.finished_jobs AS undoing ON undoing.id = saga.undo_id
WHERE saga.ended_at IS NOT NULL
  AND undoing.state IN ('failed', 'cancelled')
ORDER BY saga.ended_at DESC
LIMIT CAST(:limit AS integer);

-- name: sagas_after
-- How many of the next sagas after this one there are, and the last of them.
SELECT count(*), CAST(max(CAST(few.undo_id AS text)) AS text)
FROM (SELECT saga.undo_id FROM fencerow.sagas AS saga WHERE saga.undo_id > CAST(:after AS uuid)
      ORDER BY saga.undo_id LIMIT CAST(:limit AS integer)) AS few;

-- name: purge_sagas
-- Remove those of which both jobs are gone. Guard: neither can be revived.
WITH gone AS (
    DELETE FROM fencerow.sagas AS saga
    WHERE saga.undo_id > CAST(:after AS uuid)
      AND saga.undo_id <= CAST(:last AS uuid)
      AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = saga.job_id OFFSET 0)
      AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS undoing WHERE undoing.id = saga.undo_id OFFSET 0)
    RETURNING saga.undo_id
)
DELETE FROM fencerow.saga_steps AS step
USING gone
WHERE step.undo_id = gone.undo_id
RETURNING CAST(step.undo_id AS text);

-- name: sagas_used
-- A row, if there are sagas; else none.
SELECT 1 WHERE EXISTS (SELECT 1 FROM fencerow.sagas);
