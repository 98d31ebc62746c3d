-- Rows that are moved many at once; the moves are those of single jobs (core/store/sqlite/moves.sql).

-- name: lock_live
-- Those of these jobs that have not ended, before many are moved at once; the write lock is held already.
SELECT job.id
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('waiting', 'queued', 'running');

-- name: lock_free_finished
-- Finished jobs before many are revived; the write lock is held already.
SELECT job.id, job.scope, job.key,
       {{what must end before it is revived}}
FROM fencerow.finished_jobs AS job
WHERE {{revivable}};

-- name: lock_removable
-- Finished jobs before many are deleted; the write lock is held already.
SELECT job.id
FROM fencerow.finished_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids));
