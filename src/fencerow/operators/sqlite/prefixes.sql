-- What a person means who typed the beginning or the end of an id.

-- name: jobs_between
-- Ids of jobs in a range, live and finished together. The two indexes are merged in their order. (An order by the
-- view read every job there is.)
SELECT job.id
FROM fencerow.jobs AS job
WHERE job.id BETWEEN :first AND :last
UNION ALL
SELECT job.id
FROM fencerow.finished_jobs AS job
WHERE job.id BETWEEN :first AND :last
ORDER BY 1
LIMIT :limit;

-- name: jobs_ending
-- Those of the newest jobs whose id ends so, the newest first, and beside each how many were looked at; one row without
-- an id where none does. No index has the ends: so many entries of the two indexes are read, and never more.
WITH newest AS MATERIALIZED (
    SELECT each.id FROM (
        SELECT job.id AS id FROM fencerow.jobs AS job
        UNION ALL
        SELECT job.id AS id FROM fencerow.finished_jobs AS job
        ORDER BY 1 DESC
        LIMIT :look
    ) AS each
), found AS (
    SELECT newest.id FROM newest
    WHERE substr(replace(newest.id, '-', ''), -length(:digits)) = :digits
    ORDER BY newest.id DESC LIMIT :limit
)
SELECT (SELECT count(*) FROM newest), found.id
FROM (SELECT 1) AS one
LEFT JOIN found ON true
ORDER BY found.id DESC;

-- name: workers_between
-- Ids of registrations in a range, in order, by the primary key. A state that is null lets all pass.
SELECT worker.id
FROM fencerow.workers AS worker
WHERE worker.id BETWEEN :first AND :last
  AND (:state IS NULL OR worker.state = :state)
ORDER BY worker.id
LIMIT :limit;
