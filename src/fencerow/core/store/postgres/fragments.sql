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

-- fragment: failures of the moved
-- A failure is told to each limit with a breaker that binds its job, whoever knows what that makes of it. Where nobody has
-- a breaker, one look at a table of nothing is all.
INSERT INTO fencerow.limit_failures (name, at, started_at)
SELECT told.name, moved.at, moved.claimed_at
FROM moved
CROSS JOIN LATERAL (
    SELECT named.name, split_part(named.name, '/', 1) AS known FROM unnest(moved.limits) AS named (name)
    UNION ALL
    SELECT bound.name, bound.name FROM (VALUES ('queue:' || moved.queue), ('fleet')) AS bound (name)
) AS told
WHERE moved.has_failed
  AND EXISTS (SELECT 1 FROM fencerow.watched_limits AS watched WHERE watched.name IN (told.name, told.known))
