-- What comes and what it takes, by queue and name: looks at the newest rows alone, so they cost the same at any size.

-- name: came_by_name
-- Of the newest :limit jobs from an id on: how many there are of each queue and name, and when the first of all of them
-- was submitted. Live and finished together, whatever became of them.
WITH seen AS MATERIALIZED (
    SELECT job.id, job.queue, job.name, job.submitted_at
    FROM fencerow.all_jobs AS job
    WHERE job.id >= CAST(:lowest AS uuid)
    ORDER BY job.id DESC
    LIMIT CAST(:limit AS integer)
)
SELECT job.queue, job.name, count(*), (SELECT count(*) FROM seen), fencerow.us((SELECT min(seen.submitted_at) FROM seen)),
       (SELECT fencerow.us(fencerow.now()))
FROM seen AS job
GROUP BY job.queue, job.name
ORDER BY count(*) DESC, job.queue, job.name
LIMIT CAST(:names AS integer);

-- fragment: lately
-- It has ended within the time that is looked at.
job.ended_at > fencerow.later((SELECT fencerow.now()), -CAST(:age_s AS double precision))

-- name: took_by_name
-- Of the newest :limit jobs of each final state that ran and ended within :age_s: of each queue and name how many, how
-- many failed attempts, how many succeeded, the mean and the p95 of the last attempt, in microseconds.
SELECT placed.queue, placed.name, count(*), CAST(sum(placed.failures) AS bigint), CAST(sum(placed.succeeded) AS bigint),
       CAST(avg(placed.took) AS double precision),
       max(placed.took) FILTER (WHERE placed.place <= (placed.jobs * 95 + 99) / 100)
FROM (SELECT ended.queue, ended.name, ended.failures, CAST(ended.state = 'succeeded' AS integer) AS succeeded,
             greatest(fencerow.us(ended.ended_at) - fencerow.us(ended.claimed_at), 1) AS took,
             row_number() OVER (PARTITION BY ended.queue, ended.name ORDER BY ended.ended_at - ended.claimed_at) AS place,
             count(*) OVER (PARTITION BY ended.queue, ended.name) AS jobs
      FROM ((SELECT job.queue, job.name, job.failures, job.state, job.claimed_at, job.ended_at
             FROM fencerow.finished_jobs AS job
             WHERE job.state = 'succeeded' AND {{lately}}
             ORDER BY job.ended_at DESC
             LIMIT CAST(:limit AS integer))
            UNION ALL
            (SELECT job.queue, job.name, job.failures, job.state, job.claimed_at, job.ended_at
             FROM fencerow.finished_jobs AS job
             WHERE job.state = 'failed' AND {{lately}}
             ORDER BY job.ended_at DESC
             LIMIT CAST(:limit AS integer))) AS ended
      WHERE ended.claimed_at IS NOT NULL) AS placed
GROUP BY placed.queue, placed.name
ORDER BY count(*) DESC, placed.queue, placed.name
LIMIT CAST(:names AS integer);
