-- What a running attempt writes about itself. Each row is made by selecting from the job with the fence.

-- name: progress
-- Say how far a running attempt is. Guard: the fence; the newest attempt's word stands.
INSERT INTO fencerow.job_progress AS known (job_id, attempt, percent, note, at)
SELECT job.id, job.attempt, :percent, :note, fencerow.now()
FROM fencerow.jobs AS job
WHERE {{fence}}
ON CONFLICT (job_id) DO UPDATE
SET attempt = excluded.attempt, percent = excluded.percent, note = excluded.note, at = excluded.at
WHERE known.attempt <= excluded.attempt
RETURNING job_id;

-- name: log
-- Keep a line with the job. Guard: the fence.
INSERT INTO fencerow.job_logs (job_id, attempt, at, level, message)
SELECT job.id, job.attempt, fencerow.now(), :level, :message
FROM fencerow.jobs AS job
WHERE {{fence}}
RETURNING job_id;

-- name: bound_idle
-- There is no server that could end a transaction: whoever dies gives the file back by that.
SELECT job.deadline_at
FROM fencerow.jobs AS job
WHERE job.id = :id;

-- name: hold_fence
-- Whether this attempt holds its job. The transaction has the write lock, so no claim comes before its end.
SELECT job.cancel_requested_at IS NOT NULL
FROM fencerow.jobs AS job
WHERE {{fence}};

-- name: check_fence
-- Whether this attempt still holds its job, and whether a cancel was asked.
SELECT job.cancel_requested_at IS NOT NULL
FROM fencerow.jobs AS job
WHERE {{fence}};
