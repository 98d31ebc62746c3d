-- Bounded counts for pages that people leave open: each reads a few index entries, however many jobs there are.

-- name: counted_live
-- Live jobs by queue and state, at most so many of each, with the earliest instant among those that were counted. The
-- queues are found by jumping along the index of the lanes; what runs or waits lies in small indexes of its own.
WITH RECURSIVE lanes (queue) AS (
    SELECT (SELECT min(job.queue)
            FROM fencerow.jobs AS job
            WHERE job.state = 'queued')
    UNION ALL
    SELECT (SELECT min(job.queue)
            FROM fencerow.jobs AS job
            WHERE job.state = 'queued' AND job.queue > lanes.queue)
    FROM lanes
    WHERE lanes.queue IS NOT NULL
),
counted AS (
    SELECT lanes.queue, 'queued' AS state,
           (SELECT count(*)
            FROM (SELECT 1
                  FROM fencerow.jobs AS job
                  WHERE job.queue = lanes.queue AND job.state = 'queued'
                  LIMIT :limit)) AS jobs,
           (SELECT min(seen.run_at)
            FROM (SELECT job.run_at
                  FROM fencerow.jobs AS job
                  WHERE job.queue = lanes.queue AND job.state = 'queued'
                  LIMIT :limit) AS seen) AS first
    FROM lanes
    WHERE lanes.queue IS NOT NULL
    UNION ALL
    SELECT seen.queue, 'running', count(*), min(seen.claimed_at)
    FROM (SELECT job.queue, job.claimed_at
          FROM fencerow.jobs AS job
          WHERE job.state = 'running'
          LIMIT :limit) AS seen
    GROUP BY seen.queue
    UNION ALL
    SELECT seen.queue, 'waiting', count(*), min(seen.run_at)
    FROM (SELECT job.queue, job.run_at
          FROM fencerow.jobs AS job
          WHERE job.state = 'waiting' AND job.gate IS NOT NULL
          LIMIT :limit) AS seen
    GROUP BY seen.queue
)
SELECT counted.queue, counted.state, sum(counted.jobs), min(counted.first), fencerow.now()
FROM counted
GROUP BY counted.queue, counted.state
ORDER BY counted.queue, counted.state;

-- name: counted_recent
-- Jobs that have ended within so many seconds, by state, at most so many of each.
SELECT wanted.value,
       (SELECT count(*)
        FROM (SELECT 1
              FROM fencerow.finished_jobs AS job
              WHERE job.state = wanted.value AND job.ended_at > fencerow.now() - :age_s * 1000000
              LIMIT :limit))
FROM json_each('["succeeded", "failed", "cancelled"]') AS wanted;

-- name: latest_failures
-- The jobs that failed last, by when that was: an index has them in this order, however many others have ended.
SELECT job.id, job.name, job.error, job.ended_at
FROM fencerow.finished_jobs AS job
WHERE job.state = 'failed'
ORDER BY job.ended_at DESC
LIMIT :limit;
