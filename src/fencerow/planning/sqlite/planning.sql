-- What jobs took that have ended: nothing here reads a payload or changes anything.

-- name: ended_jobs
-- The newest jobs that succeeded, and those that failed, no more than so many of each: their index gives them newest
-- first, however many rows there are. Name, failed attempts, whether it succeeded, what its last attempt took from its
-- claim on, and how long ago it ended; in microseconds.
SELECT ended.name, ended.failures, ended.state = 'succeeded',
       ended.ended_at - ended.claimed_at, fencerow.now() - ended.ended_at
FROM (SELECT * FROM (SELECT job.name, job.failures, job.state, job.claimed_at, job.ended_at
                     FROM fencerow.finished_jobs AS job
                     WHERE job.state = 'succeeded'
                     ORDER BY job.ended_at DESC
                     LIMIT :limit)
      UNION ALL
      SELECT * FROM (SELECT job.name, job.failures, job.state, job.claimed_at, job.ended_at
                     FROM fencerow.finished_jobs AS job
                     WHERE job.state = 'failed'
                     ORDER BY job.ended_at DESC
                     LIMIT :limit)) AS ended;
