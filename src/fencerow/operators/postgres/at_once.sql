-- Rows that are moved many at once; the moves are those of single jobs (core/store/postgres/moves.sql).

-- name: lock_live
-- Lock those of these jobs that have not ended, before many are moved at once. Rows that a stranger has locked are left:
-- whoever moves many moves these alone. So two that move many at once never wait for one another.
SELECT job.id
FROM fencerow.jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state IN ('waiting', 'queued', 'running')
FOR UPDATE SKIP LOCKED;

-- name: lock_free_finished
-- Lock finished jobs before many are revived. Rows that a stranger has locked are left: they are revived alone.
SELECT job.id, job.scope, job.key,
       CAST({{what must end before it is revived}} AS text)
FROM fencerow.finished_jobs AS job
WHERE {{revivable}}
FOR UPDATE SKIP LOCKED;

-- name: lock_removable
-- Lock finished jobs before many are deleted. Rows that a stranger has locked are left: they are deleted alone.
SELECT job.id
FROM fencerow.finished_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
FOR UPDATE SKIP LOCKED;
