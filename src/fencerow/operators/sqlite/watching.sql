-- Jobs that are watched while they run: how they stand, and the lines that came since.

-- name: watched
-- How these jobs stand, what their attempts said last, and the last line that is kept with each (0: none). One statement
-- is for all who watch, again and again: it reads no payload.
SELECT job.id, job.queue, job.state, job.attempt, job.failures, job.run_at, job.claimed_at,
       job.ended_at, job.cancel_requested_at, progress.percent, progress.note,
       COALESCE((SELECT max(line.id) FROM fencerow.job_logs AS line WHERE line.job_id = job.id), 0)
{{jobs with progress}}
WHERE job.id IN (SELECT value FROM json_each(:ids));

-- name: lines_after
-- For each reader, by its number, the lines of a job after the one that it read last, at most so many of each.
WITH wanted AS MATERIALIZED (
    SELECT json_extract(reader.value, '$.number') AS number, json_extract(reader.value, '$.job') AS job,
           json_extract(reader.value, '$.position') AS position,
           (SELECT max(page.id)
            FROM (SELECT line.id
                  FROM fencerow.job_logs AS line
                  WHERE line.job_id = json_extract(reader.value, '$.job')
                    AND line.id > json_extract(reader.value, '$.position')
                  ORDER BY line.id
                  LIMIT :limit) AS page) AS last
    FROM json_each(:wanted) AS reader
)
SELECT wanted.number, line.id, line.attempt, line.at, line.level, line.message, fencerow.now()
FROM wanted
JOIN fencerow.job_logs AS line
    ON line.job_id = wanted.job AND line.id > wanted.position AND line.id <= wanted.last
ORDER BY wanted.number, line.id;
