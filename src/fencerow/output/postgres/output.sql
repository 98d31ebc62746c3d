-- The output of jobs. Each group is made by selecting from the job FOR SHARE with the fence: a plain INSERT would let a
-- stale attempt write after a newer claim.

-- fragment: fence
-- The attempt that asks still runs its job: any other holder or attempt finds no row, and so changes nothing.
job.id = CAST(:id AS uuid)
  AND job.state IS NOT DISTINCT FROM 'running'
  AND job.holder = CAST(:holder AS uuid)
  AND job.attempt = CAST(:attempt AS bigint)

-- name: begin_output
-- Whether the attempt may emit, and how much the job has emitted until now. No row: the attempt no longer holds the job.
SELECT job.ephemeral, COALESCE(sum(known.chunks), 0), COALESCE(sum(known.bytes), 0)
FROM fencerow.jobs AS job
LEFT JOIN fencerow.job_output AS known ON known.job_id = job.id
WHERE {{fence}}
GROUP BY job.ephemeral;

-- name: write_output
-- Write a group of chunks. Guard: the fence. No row: the attempt no longer holds the job, or has written this before.
WITH held AS (
    SELECT job.id, job.attempt
    FROM fencerow.jobs AS job
    WHERE {{fence}}
    FOR SHARE
)
INSERT INTO fencerow.job_output (job_id, last, attempt, chunks, bytes, data, at)
SELECT held.id, CAST(:last AS bigint), held.attempt, CAST(:chunks AS integer), CAST(:bytes AS integer),
       CAST(:data AS json), (SELECT fencerow.now())
FROM held
ON CONFLICT (job_id, last) DO NOTHING
RETURNING last;

-- name: emitting_job
-- How the job stands whose output is read. No row: it is nowhere. In an earlier statement than the one that reads: once the job
-- has ended nothing more is written, so what a later one finds is all.
SELECT job.queue, job.state, job.attempt
FROM fencerow.all_jobs AS job
WHERE job.id = CAST(:id AS uuid);

-- name: output_after
-- The next groups with chunks behind this offset, in order.
SELECT known.last, known.attempt, known.chunks, CAST(known.data AS text), fencerow.us(known.at)
FROM fencerow.job_output AS known
WHERE known.job_id = CAST(:id AS uuid)
  AND known.last > CAST(:after AS bigint)
ORDER BY known.last
LIMIT CAST(:limit AS integer);

-- name: output_parts
-- What each attempt has emitted, in order: from when until when, how many chunks and bytes.
SELECT known.attempt, fencerow.us(min(known.at)), fencerow.us(max(known.at)), sum(known.chunks), sum(known.bytes)
FROM fencerow.job_output AS known
WHERE known.job_id = CAST(:id AS uuid)
GROUP BY known.attempt
ORDER BY known.attempt;

-- name: emitting_jobs
-- How these jobs stand, and the offset of what each has emitted last. For many who follow them at once.
SELECT CAST(job.id AS text), job.queue, job.state, job.attempt,
       COALESCE((SELECT max(known.last) FROM fencerow.job_output AS known WHERE known.job_id = job.id), 0)
FROM fencerow.all_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]));

-- name: output_used
-- A row, if there is output; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.job_output);

-- name: emitting_jobs_after
-- How many of the next jobs after this one, in the order of their ids, have output, and the last of them.
SELECT count(*), CAST(max(CAST(few.job_id AS text)) AS text)
FROM (SELECT DISTINCT known.job_id FROM fencerow.job_output AS known WHERE known.job_id > CAST(:after AS uuid)
      ORDER BY known.job_id LIMIT CAST(:limit AS integer)) AS few;

-- name: purge_output
-- Remove the output of jobs that have ended long enough ago, or are gone. Guard: no attempt can add to it meanwhile; what is
-- revived has a part of its own.
DELETE FROM fencerow.job_output AS known
WHERE known.job_id > CAST(:after AS uuid)
  AND known.job_id <= CAST(:last AS uuid)
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = known.job_id OFFSET 0)
  AND NOT EXISTS (SELECT 1 FROM fencerow.finished_jobs AS job
                  WHERE job.id = known.job_id
                    AND job.ended_at > (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
                  OFFSET 0)
RETURNING CAST(known.job_id AS text);
