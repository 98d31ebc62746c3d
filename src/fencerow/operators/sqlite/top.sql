-- What `fencerow top` asks each second: live jobs by queue, what ended in the last minute, the latest failures.

-- name: top_queues
-- Live jobs of each queue: due, due later, running, waiting for something else, and the first due instant.
-- One walk of the live jobs; whoever asks pauses after it for nine times as long.
SELECT job.queue,
       count(*) FILTER (WHERE job.state = 'queued' AND job.run_at <= clock.now),
       count(*) FILTER (WHERE job.state = 'queued' AND job.run_at > clock.now),
       count(*) FILTER (WHERE job.state = 'running'),
       count(*) FILTER (WHERE job.state = 'waiting'),
       min(job.run_at) FILTER (WHERE job.state = 'queued' AND job.run_at <= clock.now)
FROM fencerow.jobs AS job
CROSS JOIN (SELECT fencerow.now() AS now) AS clock
GROUP BY job.queue
ORDER BY job.queue;

-- name: top_ends
-- How many kept jobs ended lately, by queue and state; of each state the newest ones only, so that it stays cheap.
SELECT ended.queue, ended.state, count(*)
FROM (SELECT * FROM (SELECT job.queue, job.state
                     FROM fencerow.finished_jobs AS job
                     WHERE job.state = 'succeeded' AND job.ended_at > fencerow.now() - CAST(:seconds * 1000000 AS INTEGER)
                     ORDER BY job.ended_at DESC
                     LIMIT :limit)
      UNION ALL
      SELECT * FROM (SELECT job.queue, job.state
                     FROM fencerow.finished_jobs AS job
                     WHERE job.state = 'failed' AND job.ended_at > fencerow.now() - CAST(:seconds * 1000000 AS INTEGER)
                     ORDER BY job.ended_at DESC
                     LIMIT :limit)
      UNION ALL
      SELECT * FROM (SELECT job.queue, job.state
                     FROM fencerow.finished_jobs AS job
                     WHERE job.state = 'cancelled' AND job.ended_at > fencerow.now() - CAST(:seconds * 1000000 AS INTEGER)
                     ORDER BY job.ended_at DESC
                     LIMIT :limit)) AS ended
GROUP BY ended.queue, ended.state
ORDER BY ended.queue, ended.state;

-- name: top_failures
-- The jobs that failed last.
SELECT job.id, job.queue, job.name, job.attempt, job.ended_at, job.error
FROM fencerow.finished_jobs AS job
WHERE job.state = 'failed'
ORDER BY job.ended_at DESC
LIMIT :limit;
