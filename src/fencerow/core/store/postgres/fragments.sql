-- What queries of several files share. `{{fence}}` in one stands for the text of that name here.

-- fragment: fence
-- The attempt that asks still runs its job: any other holder or attempt finds no row, and so changes nothing.
job.id = CAST(:id AS uuid)
  AND job.state = 'running'
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

-- fragment: first gate
-- Where a job that needs turns waits first.
COALESCE('key:' || job.exclusive, 'limit:' || job.limits[1])

-- fragment: gives its turns up
-- An attempt is over and the next one comes later: others go first meanwhile. A strict job keeps what it has.
NOT job.strict AND (job.exclusive IS NOT NULL OR job.limits IS NOT NULL)

-- fragment: gates of the moved
-- Where those wait now that have given their turns up. The gates are to be looked at: a turn is free there.
SELECT 'key:' || moved.exclusive, moved.priority, moved.run_at
FROM moved WHERE moved.state = 'waiting' AND moved.exclusive IS NOT NULL
UNION
SELECT 'limit:' || unnest(moved.limits), moved.priority, moved.run_at
FROM moved WHERE moved.state = 'waiting' AND moved.limits IS NOT NULL
