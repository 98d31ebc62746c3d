-- What comes and what it takes, by queue and name: looks at the newest rows alone, so they cost the same at any size.

-- name: came_by_name
-- Of the newest :limit jobs from an id on: how many there are of each queue and name, and when the first of all of them
-- was submitted. Live and finished together, whatever became of them.
WITH seen AS MATERIALIZED (
    SELECT live.id, live.queue, live.name, live.submitted_at
    FROM fencerow.jobs AS live
    WHERE live.id >= :lowest
    UNION ALL
    SELECT ended.id, ended.queue, ended.name, ended.submitted_at
    FROM fencerow.finished_jobs AS ended
    WHERE ended.id >= :lowest
    ORDER BY 1 DESC
    LIMIT :limit
)
SELECT job.queue, job.name, count(*), (SELECT count(*) FROM seen), (SELECT min(seen.submitted_at) FROM seen), fencerow.now()
FROM seen AS job
GROUP BY job.queue, job.name
ORDER BY count(*) DESC, job.queue, job.name
LIMIT :names;

-- name: took_by_name
-- Of the newest :limit jobs of each final state that ran and ended within :age_s: of each queue and name how many, how
-- many failed attempts, how many succeeded, the mean and the p95 of the last attempt, in microseconds.
SELECT placed.queue, placed.name, count(*), sum(placed.failures), sum(placed.succeeded), avg(placed.took),
       max(placed.took) FILTER (WHERE placed.place <= (placed.jobs * 95 + 99) / 100)
FROM (SELECT ended.queue, ended.name, ended.failures, ended.state = 'succeeded' AS succeeded,
             max(ended.ended_at - ended.claimed_at, 1) AS took,
             row_number() OVER (PARTITION BY ended.queue, ended.name ORDER BY ended.ended_at - ended.claimed_at) AS place,
             count(*) OVER (PARTITION BY ended.queue, ended.name) AS jobs
      FROM (SELECT * FROM (SELECT job.queue, job.name, job.failures, job.state, job.claimed_at, job.ended_at
                           FROM fencerow.finished_jobs AS job
                           WHERE job.state = 'succeeded' AND job.ended_at > fencerow.now() - :age_s * 1000000
                           ORDER BY job.ended_at DESC
                           LIMIT :limit)
            UNION ALL
            SELECT * FROM (SELECT job.queue, job.name, job.failures, job.state, job.claimed_at, job.ended_at
                           FROM fencerow.finished_jobs AS job
                           WHERE job.state = 'failed' AND job.ended_at > fencerow.now() - :age_s * 1000000
                           ORDER BY job.ended_at DESC
                           LIMIT :limit)) AS ended
      WHERE ended.claimed_at IS NOT NULL) AS placed
GROUP BY placed.queue, placed.name
ORDER BY count(*) DESC, placed.queue, placed.name
LIMIT :names;
