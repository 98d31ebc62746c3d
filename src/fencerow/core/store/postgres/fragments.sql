-- What queries of several files have in common. `{{fence}}` in one stands for the text of that name here.

-- fragment: fence
-- The attempt that asks still runs its job: any other holder or attempt finds no row, and so changes nothing. The job is found by its
-- id: with = a plan may walk all jobs of this holder, and what it left in their index.
job.id = CAST(:id AS uuid)
  AND job.state IS NOT DISTINCT FROM 'running'
  AND job.holder = CAST(:holder AS uuid)
  AND job.attempt = CAST(:attempt AS bigint)

-- fragment: job held by the fence
-- Locked against a newer claim until the transaction ends.
WITH held AS (
    SELECT job.id, job.attempt
    FROM fencerow.jobs AS job
    WHERE {{fence}}
    FOR SHARE
)
