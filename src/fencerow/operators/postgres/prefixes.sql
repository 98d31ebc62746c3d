-- What a person means who typed the beginning of an id.

-- name: jobs_between
-- Ids of jobs in a range, live and finished together: each table's primary key gives them in order.
SELECT job.id
FROM fencerow.all_jobs AS job
WHERE job.id BETWEEN CAST(:first AS uuid) AND CAST(:last AS uuid)
ORDER BY job.id
LIMIT CAST(:limit AS integer);

-- name: workers_between
-- Ids of registrations in a range, in order, by the primary key. A state that is null lets all pass.
SELECT worker.id
FROM fencerow.workers AS worker
WHERE worker.id BETWEEN CAST(:first AS uuid) AND CAST(:last AS uuid)
  AND (CAST(:state AS text) IS NULL OR worker.state = :state)
ORDER BY worker.id
LIMIT CAST(:limit AS integer);
