-- What queries of several files have in common. `{{fence}}` in one stands for the text of that name here.

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

-- fragment: into the moved
-- What a SELECT behind it finds are the jobs that were moved, by their ids, for what wings bring. The table belongs to the
-- connection, and whoever fills it empties it.
CREATE TEMP TABLE IF NOT EXISTS fencerow.moved (id TEXT NOT NULL);
INSERT INTO fencerow.moved (id)

-- fragment: out of the moved
DELETE FROM fencerow.moved

-- fragment: when outcomes wait again
-- What wings bring where jobs wait again, for those of the outcomes that do.
{{into the moved}}
SELECT job.id
FROM json_each(:outcomes) AS o JOIN fencerow.jobs AS job ON job.id = json_extract(o.value, '$.id')
WHERE job.state = 'waiting';
{{when jobs wait again}}
{{out of the moved}}

-- fragment: fail where they lie
-- What ends attempts as failed, and leaves their rows among the live jobs. Guard: the fence of each.
UPDATE fencerow.jobs
SET state = 'failed',
    failures = failures + 1,
    error = json_extract(o.value, '$.error'),
    ended_at = fencerow.now()
{{outcomes under the fence of the row}}
