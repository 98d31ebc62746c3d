-- What limits say where attempts of the core's fail.

-- fragment: limits of the job
-- All limits that bind a job, whether they are defined or not.
json_insert(COALESCE(job.limits, '[]'), '$[#]', 'queue:' || job.queue, '$[#]', 'fleet')

-- fragment: is watched
-- Whether a limit of this name, or the one of whose keys it is, has a breaker.
EXISTS (SELECT 1
        FROM fencerow.watched_limits AS watched
        WHERE watched.name = told.value
           OR substr(told.value, 1, 6) <> 'queue:'
              AND watched.name = substr(told.value, 1, instr(told.value || '/', '/') - 1))

-- at: when attempts have failed
-- A failure is told to each limit with a breaker that binds its job, whoever knows what that makes of it. Ends at once
-- where nobody has a breaker.
INSERT INTO fencerow.limit_failures (name, at, started_at)
SELECT told.value, fencerow.now(), job.claimed_at
FROM fencerow.moved AS moved
JOIN fencerow.jobs AS job ON job.id = moved.id
JOIN json_each({{limits of the job}}) AS told
WHERE EXISTS (SELECT 1 FROM fencerow.watched_limits)
  AND {{is watched}};
