-- What workers hold, for people.

-- name: held_jobs
-- The jobs that one worker holds, the oldest claim first: for people.
SELECT job.id, job.name, job.queue, job.attempt, job.priority, fencerow.us(job.claimed_at),
       job.cancel_requested_at IS NOT NULL, fencerow.us(fencerow.now())
FROM fencerow.jobs AS job
WHERE job.holder = CAST(:holder AS uuid)
  AND job.state = 'running'
ORDER BY job.claimed_at, job.id
LIMIT CAST(:limit AS integer);

-- name: held_counts
-- How many jobs each of these workers holds, and how many of them are suspects.
SELECT job.holder, count(*), count(*) FILTER (WHERE job.suspect)
FROM fencerow.jobs AS job
WHERE job.holder = ANY(CAST(:holders AS uuid[]))
  AND job.state = 'running'
GROUP BY job.holder;
