-- What is written for a canary beside the job that it is.

-- name: note_canary
-- Say in the timeline of a canary who sent it. Guard: it is one, by its queue, and has not ended.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
SELECT job.id, job.attempt, fencerow.now(), 'canary', :actor
FROM fencerow.jobs AS job
WHERE job.id = :id AND job.queue = :queue
RETURNING job_id;
