-- What queries of several files share. `{{fence}}` in one stands for the text of that name here.

-- fragment: fence
-- The attempt that asks still runs its job: any other holder or attempt finds no row, and so changes nothing.
job.id = :id
  AND job.state = 'running'
  AND job.holder = :holder
  AND job.attempt = :attempt

-- fragment: outcomes under the fence
-- The outcomes, each with its job: still running, under this holder, in its attempt.
FROM json_each(:outcomes) AS o
JOIN fencerow.jobs AS job ON job.id = json_extract(o.value, '$.id')
WHERE job.state = 'running'
  AND +job.holder = :holder
  AND job.attempt = json_extract(o.value, '$.attempt')

-- fragment: outcomes under the fence of the row
-- The same for an UPDATE, whose own row is the job.
FROM json_each(:outcomes) AS o
WHERE fencerow.jobs.id = json_extract(o.value, '$.id')
  AND fencerow.jobs.state = 'running'
  AND +fencerow.jobs.holder = :holder
  AND fencerow.jobs.attempt = json_extract(o.value, '$.attempt')

-- fragment: first gate
-- Where a job that needs turns waits first.
COALESCE('key:' || exclusive, 'limit:' || json_extract(limits, '$[0]'))

-- fragment: gives its turns up
-- An attempt is over and the next one comes later: others go first meanwhile. A strict job keeps what it has.
strict = 0 AND (exclusive IS NOT NULL OR limits IS NOT NULL)

-- fragment: gates of the outcomes
-- Where those wait now that have given their turns up. The gates are to be looked at: a turn is free there.
SELECT 'key:' || job.exclusive, job.priority, job.run_at
FROM json_each(:outcomes) AS o JOIN fencerow.jobs AS job ON job.id = json_extract(o.value, '$.id')
WHERE job.state = 'waiting' AND job.exclusive IS NOT NULL
UNION
SELECT 'limit:' || named.value, job.priority, job.run_at
FROM json_each(:outcomes) AS o JOIN fencerow.jobs AS job ON job.id = json_extract(o.value, '$.id')
JOIN json_each(job.limits) AS named
WHERE job.state = 'waiting'

-- fragment: any job needs turns
-- Ends a statement at once where none does.
EXISTS (SELECT 1 FROM fencerow.jobs AS any_job WHERE any_job.exclusive IS NOT NULL OR any_job.limits IS NOT NULL)
