-- Jobs that are watched while they run: how they stand, and the lines that came since.

-- name: watched
-- How these jobs stand, what their attempts said last, and the last line that is kept with each (0: none). One statement
-- is for all who watch, again and again: it reads no payload.
SELECT job.id, job.queue, job.state, job.attempt, job.failures, fencerow.us(job.run_at), fencerow.us(job.claimed_at),
       fencerow.us(job.ended_at), fencerow.us(job.cancel_requested_at), progress.percent, progress.note,
       COALESCE((SELECT max(line.id) FROM fencerow.job_logs AS line WHERE line.job_id = job.id), 0)
{{jobs with progress}}
WHERE job.id = ANY(CAST(:ids AS uuid[]));

-- name: lines_after
-- For each reader, by its number, the lines of a job after the one that it read last, at most so many of each.
WITH wanted AS MATERIALIZED (
    SELECT reader.number, reader.job, reader.position,
           (SELECT max(page.id)
            FROM (SELECT line.id
                  FROM fencerow.job_logs AS line
                  WHERE line.job_id = reader.job AND line.id > reader.position
                  ORDER BY line.id
                  LIMIT CAST(:limit AS integer)) AS page) AS last
    FROM json_to_recordset(CAST(:wanted AS json)) AS reader (number integer, job uuid, position bigint)
)
SELECT wanted.number, line.id, line.attempt, fencerow.us(line.at), line.level, line.message,
       fencerow.us((SELECT fencerow.now()))
FROM wanted
JOIN fencerow.job_logs AS line
    ON line.job_id = wanted.job AND line.id > wanted.position AND line.id <= wanted.last
ORDER BY wanted.number, line.id;
