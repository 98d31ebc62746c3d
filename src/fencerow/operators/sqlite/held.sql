-- What workers hold, for people.

-- name: held_jobs
-- The jobs that one worker holds, the oldest claim first: for people.
SELECT job.id, job.name, job.queue, job.attempt, job.priority, job.claimed_at,
       job.cancel_requested_at IS NOT NULL, fencerow.now()
FROM fencerow.jobs AS job
WHERE job.holder = :holder
  AND job.state = 'running'
ORDER BY job.claimed_at, job.id
LIMIT :limit;

-- name: held_counts
-- How many jobs each of these workers holds, and how many of them are suspects.
SELECT job.holder, count(*), count(*) FILTER (WHERE job.suspect = 1)
FROM fencerow.jobs AS job
WHERE job.holder IN (SELECT value FROM json_each(:holders))
  AND job.state = 'running'
GROUP BY job.holder;
