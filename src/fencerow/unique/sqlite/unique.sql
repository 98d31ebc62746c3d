-- Unique jobs: a key's row names the job that was submitted under it last. Whoever submits has the write lock, so that
-- nobody else does until its transaction ends; how the job stands is written nowhere.

-- fragment: wanted pairs
-- Keys, with their scopes.
(SELECT json_extract(value, '$.scope') AS scope, json_extract(value, '$.key') AS key FROM json_each(:pairs)) AS wanted

-- fragment: period counts
-- The key is its job's, whatever becomes of that. An instant that lies further ahead than the period is long was written
-- before the clock went back.
COALESCE(owned.until_at > fencerow.now() AND owned.until_at <= fencerow.now() + owned.until_at - owned.first_at, 0)

-- fragment: is over
-- The job of a key is gone, and so is the period for which it counts whatever becomes of it.
(NOT {{period counts}}
 AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS live WHERE live.id = owned.job_id)
 AND NOT EXISTS (SELECT 1 FROM fencerow.finished_jobs AS finished WHERE finished.id = owned.job_id))

-- fragment: has expired
-- Nobody claims it any more, and the next sweep ends it: whoever asks finds it ended.
(job.state IN ('waiting', 'queued') AND COALESCE(job.expires_at <= fencerow.now(), 0))

-- name: lock_unique
-- Make those of these keys that are not there, for the jobs that come with them; returns the keys that were made.
-- Guard: the primary key.
INSERT INTO fencerow.unique_jobs (scope, key, job_id, first_at, until_at)
SELECT json_extract(wanted.value, '$.scope'), json_extract(wanted.value, '$.key'), json_extract(wanted.value, '$.job_id'),
       fencerow.now(), fencerow.now() + CAST(json_extract(wanted.value, '$.period_s') * 1000000 AS INTEGER)
FROM json_each(:wanted) AS wanted
WHERE true
ON CONFLICT (scope, key) DO NOTHING
RETURNING scope, key;

-- name: hold_unique
-- The jobs of these keys that nobody has started yet; the write lock is held already. One that has expired is left to the
-- sweep that ends it.
SELECT job.id, job.name, job.args, job.scope, job.key, job.exclusive, job.limits
FROM {{wanted pairs}}
JOIN fencerow.unique_jobs AS owned ON owned.scope = wanted.scope AND owned.key = wanted.key
JOIN fencerow.jobs AS job ON job.id = owned.job_id
WHERE job.state IN ('waiting', 'queued') AND NOT {{has expired}};

-- name: read_unique
-- The jobs of these keys, and how those stand that are live.
SELECT owned.scope, owned.key, owned.job_id, owned.first_at, {{period counts}},
       CASE WHEN {{has expired}} THEN 'failed' ELSE job.state END, job.attempt, fencerow.now()
FROM {{wanted pairs}}
JOIN fencerow.unique_jobs AS owned ON owned.scope = wanted.scope AND owned.key = wanted.key
LEFT JOIN fencerow.jobs AS job ON job.id = owned.job_id;

-- name: read_replaced
-- Which of these submits have replaced one of these jobs already.
SELECT note.job_id, json_extract(note.detail, '$.submit')
FROM fencerow.job_events AS note
WHERE note.job_id IN (SELECT value FROM json_each(:ids))
  AND note.kind = 'replaced'
  AND json_extract(note.detail, '$.submit') IN (SELECT value FROM json_each(:submits));

-- name: own_unique
-- Name the new jobs of these keys.
UPDATE fencerow.unique_jobs
SET job_id = given.job_id,
    first_at = fencerow.now(),
    until_at = fencerow.now() + CAST(given.period_s * 1000000 AS INTEGER)
FROM (SELECT json_extract(value, '$.scope') AS scope, json_extract(value, '$.key') AS key,
             json_extract(value, '$.job_id') AS job_id, json_extract(value, '$.period_s') AS period_s
      FROM json_each(:owned)) AS given
WHERE fencerow.unique_jobs.scope = given.scope
  AND fencerow.unique_jobs.key = given.key;

-- name: unique_keys_of
-- The keys under which submits find these jobs, and since and until when.
SELECT owned.job_id, owned.scope, owned.key, owned.first_at, owned.until_at
FROM fencerow.unique_jobs AS owned
WHERE owned.job_id IN (SELECT value FROM json_each(:ids))
ORDER BY owned.scope, owned.key;

-- name: next_unique
-- The next keys, in their order; and of each whether its job is gone and its period over.
SELECT owned.scope, owned.key, {{is over}}
FROM fencerow.unique_jobs AS owned
WHERE (owned.scope, owned.key) > (:scope, :key)
ORDER BY owned.scope, owned.key
LIMIT :limit;

-- name: lock_over
-- Keys that are to be forgotten; the write lock is held already.
SELECT wanted.scope, wanted.key FROM {{wanted pairs}};

-- name: purge_unique
-- Forget keys whose job is gone, and whose period is over. Guard: both.
DELETE FROM fencerow.unique_jobs AS owned
WHERE (owned.scope, owned.key) IN (SELECT wanted.scope, wanted.key FROM {{wanted pairs}})
  AND {{is over}}
RETURNING scope, key;

-- name: stuck_unique_keys
-- Unique keys whose job has been due for long and does not run, those first that have waited longest. As many keys are
-- looked at as are named, so that a table with millions of keys makes no long statement.
SELECT owned.scope, owned.key, late.id, late.queue, late.state, fencerow.now() - late.run_at,
       (SELECT count(*) FROM fencerow.job_events AS note
        WHERE note.job_id = late.id AND note.kind = 'replaced')
FROM (SELECT each.scope, each.key, each.job_id
      FROM fencerow.unique_jobs AS each
      ORDER BY each.scope, each.key
      LIMIT :looked_at) AS owned
JOIN fencerow.jobs AS late ON late.id = owned.job_id
WHERE late.state IN ('waiting', 'queued')
  AND NOT (late.state = 'waiting' AND late.gate IS NULL)  -- suspended: it is not late, whatever it was due
  AND late.run_at < fencerow.now() - CAST(:late_s * 1000000 AS INTEGER)
ORDER BY late.run_at, owned.scope, owned.key
LIMIT :limit;

-- name: unique_used
-- A row once there is a unique key.
SELECT 1 FROM fencerow.unique_jobs LIMIT 1;
