-- What is to be undone of a job: written beside the memory of its steps, read by its compensation.

-- name: put_saga
-- Note the compensation of a job, at its first step that can be undone. In the transaction that remembers the step: the fence
-- holds. Guard: the job has none that is open.
INSERT INTO fencerow.sagas (undo_id, job_id, job, since)
VALUES (:undo_id, :id, :job, fencerow.now())
ON CONFLICT (job_id) WHERE ended_at IS NULL DO NOTHING;

-- name: put_saga_step
-- Note what undoes a step.
INSERT INTO fencerow.saga_steps (undo_id, name, seq, undo, result)
SELECT saga.undo_id, :name, :seq, :undo, :result
FROM fencerow.sagas AS saga
WHERE saga.job_id = :id
  AND saga.ended_at IS NULL
ON CONFLICT (undo_id, name) DO NOTHING;

-- name: saga_steps_of
-- What a compensation undoes, in that order, and of whose job.
SELECT step.name, step.undo, step.result, saga.job_id
FROM fencerow.saga_steps AS step
JOIN fencerow.sagas AS saga ON saga.undo_id = step.undo_id
WHERE step.undo_id = :id
ORDER BY step.seq DESC, step.name DESC;

-- name: sagas_of
-- The compensations of a job, or the one that this job is, the newest first.
SELECT saga.undo_id, saga.job_id, saga.ended_at, saga.anew, undoing.state,
       (SELECT count(*) FROM fencerow.saga_steps AS step WHERE step.undo_id = saga.undo_id)
FROM fencerow.sagas AS saga
LEFT JOIN fencerow.all_jobs AS undoing ON undoing.id = saga.undo_id
WHERE saga.job_id = :id
   OR saga.undo_id = :id
ORDER BY saga.since DESC, saga.undo_id;

-- name: queued_compensations
-- Those of these jobs that nobody has claimed yet: what a wake-up has to say.
SELECT undoing.id, undoing.queue, undoing.priority, undoing.run_at, undoing.lane
FROM fencerow.sagas AS saga
JOIN fencerow.jobs AS undoing ON undoing.id = saga.undo_id
WHERE saga.job_id IN (SELECT value FROM json_each(:ids))
  AND undoing.state = 'queued';

-- name: failed_sagas
-- Compensations that have failed for good or were cancelled: what they should undo stands.
SELECT saga.undo_id, saga.job_id, undoing.state
FROM fencerow.sagas AS saga
JOIN fencerow.finished_jobs AS undoing ON undoing.id = saga.undo_id
WHERE saga.ended_at IS NOT NULL
  AND undoing.state IN ('failed', 'cancelled')
ORDER BY saga.ended_at DESC
LIMIT :limit;

-- name: sagas_after
-- How many of the next sagas after this one there are, and the last of them.
SELECT count(*), max(few.undo_id)
FROM (SELECT saga.undo_id FROM fencerow.sagas AS saga WHERE saga.undo_id > :after
      ORDER BY saga.undo_id LIMIT :limit) AS few;

-- name: purge_sagas
-- Remove those of which both jobs are gone. Guard: neither can be revived.
DELETE FROM fencerow.sagas
WHERE undo_id > :after
  AND undo_id <= :last
  AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = job_id)
  AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS undoing WHERE undoing.id = undo_id);
DELETE FROM fencerow.saga_steps
WHERE undo_id > :after
  AND undo_id <= :last
  AND undo_id NOT IN (SELECT saga.undo_id FROM fencerow.sagas AS saga WHERE saga.undo_id > :after AND saga.undo_id <= :last)
RETURNING undo_id;

-- name: sagas_used
-- A row, if there are sagas; else none.
SELECT 1 WHERE EXISTS (SELECT 1 FROM fencerow.sagas);
