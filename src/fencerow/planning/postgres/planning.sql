-- What jobs took that have ended: nothing here reads a payload or changes anything.

-- name: ended_jobs
-- The newest jobs that succeeded, and those that failed, no more than so many of each: their index gives them newest
-- first, however many rows there are. Name, failed attempts, whether it succeeded, what its last attempt took from its
-- claim on, and how long ago it ended; in microseconds.
SELECT ended.name, ended.failures, ended.state = 'succeeded',
       fencerow.us(ended.ended_at) - fencerow.us(ended.claimed_at), fencerow.us(fencerow.now()) - fencerow.us(ended.ended_at)
FROM ((SELECT job.name, job.failures, job.state, job.claimed_at, job.ended_at
       FROM fencerow.finished_jobs AS job
       WHERE job.state = 'succeeded'
       ORDER BY job.ended_at DESC
       LIMIT CAST(:limit AS integer))
      UNION ALL
      (SELECT job.name, job.failures, job.state, job.claimed_at, job.ended_at
       FROM fencerow.finished_jobs AS job
       WHERE job.state = 'failed'
       ORDER BY job.ended_at DESC
       LIMIT CAST(:limit AS integer))) AS ended;
