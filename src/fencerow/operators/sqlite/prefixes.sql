-- What a person means who typed the beginning of an id.

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

-- name: workers_between
-- Ids of registrations in a range, in order, by the primary key. A state that is null lets all pass.
SELECT worker.id
FROM fencerow.workers AS worker
WHERE worker.id BETWEEN :first AND :last
  AND (:state IS NULL OR worker.state = :state)
ORDER BY worker.id
LIMIT :limit;
