-- What a person means who typed the beginning or the end of an id.

-- name: jobs_between
-- Ids of jobs in a range, live and finished together: each table's primary key gives them in order.
SELECT job.id
FROM fencerow.all_jobs AS job
WHERE job.id BETWEEN CAST(:first AS uuid) AND CAST(:last AS uuid)
ORDER BY job.id
LIMIT CAST(:limit AS integer);

-- name: jobs_ending
-- Those of the newest jobs whose id ends so, the newest first, and beside each how many were looked at; one row without
-- an id where none does. No index has the ends: so many entries of the primary keys are read, and never more.
WITH newest AS MATERIALIZED (
    SELECT job.id FROM fencerow.all_jobs AS job ORDER BY job.id DESC LIMIT CAST(:look AS integer)
), found AS (
    SELECT newest.id FROM newest
    WHERE right(replace(CAST(newest.id AS text), '-', ''), length(CAST(:digits AS text))) = :digits
    ORDER BY newest.id DESC LIMIT CAST(:limit AS integer)
)
SELECT (SELECT count(*) FROM newest), found.id
FROM (SELECT 1) AS one
LEFT JOIN found ON true
ORDER BY found.id DESC;

-- name: workers_between
-- Ids of registrations in a range, in order, by the primary key. A state that is null lets all pass.
SELECT worker.id
FROM fencerow.workers AS worker
WHERE worker.id BETWEEN CAST(:first AS uuid) AND CAST(:last AS uuid)
  AND (CAST(:state AS text) IS NULL OR worker.state = :state)
ORDER BY worker.id
LIMIT CAST(:limit AS integer);
