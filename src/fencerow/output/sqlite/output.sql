-- The output of jobs. Each group is made by selecting from the job with the fence.

-- fragment: fence
-- The attempt that asks still runs its job: any other holder or attempt finds no row, and so changes nothing.
job.id = :id AND job.state = 'running' AND job.holder = :holder AND job.attempt = :attempt

-- name: begin_output
-- Whether the attempt may emit, and how much the job has emitted until now. No row: the attempt no longer holds the job.
SELECT job.ephemeral, COALESCE(sum(known.chunks), 0), COALESCE(sum(known.bytes), 0)
FROM fencerow.jobs AS job
LEFT JOIN fencerow.job_output AS known ON known.job_id = job.id
WHERE {{fence}}
GROUP BY job.ephemeral;

-- name: write_output
-- Write a group of chunks. Guard: the fence. No row: the attempt no longer holds the job, or has written this before.
INSERT INTO fencerow.job_output (job_id, last, attempt, chunks, bytes, data, at)
SELECT job.id, :last, job.attempt, :chunks, :bytes, :data, fencerow.now()
FROM fencerow.jobs AS job
WHERE {{fence}}
ON CONFLICT (job_id, last) DO NOTHING
RETURNING last;

-- name: emitting_job
-- How the job stands whose output is read. No row: it is nowhere.
SELECT job.queue, job.state, job.attempt
FROM fencerow.all_jobs AS job
WHERE job.id = :id;

-- name: output_after
-- The next groups with chunks behind this offset, in order.
SELECT known.last, known.attempt, known.chunks, known.data, known.at
FROM fencerow.job_output AS known
WHERE known.job_id = :id
  AND known.last > :after
ORDER BY known.last
LIMIT :limit;

-- name: output_parts
-- What each attempt has emitted, in order: from when until when, how many chunks and bytes.
SELECT known.attempt, min(known.at), max(known.at), sum(known.chunks), sum(known.bytes)
FROM fencerow.job_output AS known
WHERE known.job_id = :id
GROUP BY known.attempt
ORDER BY known.attempt;

-- name: emitting_jobs
-- How these jobs stand, and the offset of what each has emitted last. For many who follow them at once.
SELECT job.id, job.queue, job.state, job.attempt,
       COALESCE((SELECT max(known.last) FROM fencerow.job_output AS known WHERE known.job_id = job.id), 0)
FROM fencerow.all_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids));

-- name: output_used
-- A row, if there is output; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.job_output);

-- name: emitting_jobs_after
-- How many of the next jobs after this one, in the order of their ids, have output, and the last of them.
SELECT count(*), max(few.job_id)
FROM (SELECT DISTINCT known.job_id FROM fencerow.job_output AS known WHERE known.job_id > :after
      ORDER BY known.job_id LIMIT :limit) AS few;

-- name: purge_output
-- Remove the output of jobs that have ended long enough ago, or are gone. Guard: no attempt can add to it meanwhile; what is
-- revived has a part of its own.
DELETE FROM fencerow.job_output
WHERE job_id > :after
  AND job_id <= :last
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = job_id)
  AND NOT EXISTS (SELECT 1 FROM fencerow.finished_jobs AS job
                  WHERE job.id = job_id
                    AND job.ended_at > fencerow.now() - CAST(:age_s * 1000000 AS INTEGER))
RETURNING job_id;
