-- Unique jobs: a key's row names the job that was submitted under it last. It is locked by whoever submits under the key;
-- how its job stands is asked in a later statement, and written nowhere.

-- fragment: wanted pairs
-- Keys, with their scopes.
json_to_recordset(CAST(:pairs AS json)) AS wanted (scope text, key text)

-- fragment: keys of pairs
-- Their rows. Each is looked up (OFFSET 0): where the planner believes that there are no keys, or no jobs, it would compare each with each.
{{wanted pairs}}
CROSS JOIN LATERAL (
    SELECT * FROM fencerow.unique_jobs AS known WHERE known.scope = wanted.scope AND known.key = wanted.key OFFSET 0
) AS owned

-- fragment: period counts
-- The key is its job's, whatever becomes of that. An instant that lies further ahead than the period is long was written
-- before the clock went back.
COALESCE(owned.until_at > (SELECT fencerow.now())
         AND owned.until_at <= (SELECT fencerow.now()) + (owned.until_at - owned.first_at), false)

-- fragment: is over
-- The job of a key is gone, and so is the period for which it counts whatever becomes of it.
(NOT {{period counts}}
 AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS live WHERE live.id = owned.job_id OFFSET 0)
 AND NOT EXISTS (SELECT 1 FROM fencerow.finished_jobs AS finished WHERE finished.id = owned.job_id OFFSET 0))

-- fragment: has expired
-- Nobody claims it any more, and the next sweep ends it: whoever asks finds it ended.
(job.state IN ('waiting', 'queued') AND COALESCE(job.expires_at <= (SELECT fencerow.now()), false))

-- name: lock_unique
-- Lock these keys until the transaction ends, and make those that are not there, for the jobs that come with them;
-- returns the keys that were made. Waits for whoever submits under one of them to commit or abort.
-- Guard: the primary key. In sorted order, so that two batches never wait for each other in a ring. The update changes
-- nothing; what it is there for is the lock.
INSERT INTO fencerow.unique_jobs AS owned (scope, key, job_id, first_at, until_at)
SELECT wanted.scope, wanted.key, wanted.job_id, clock.now, clock.now + fencerow.seconds(wanted.period_s)
FROM json_to_recordset(CAST(:wanted AS json)) AS wanted (
    scope text, key text, job_id uuid, period_s double precision
)
CROSS JOIN (SELECT fencerow.now() AS now) AS clock
ORDER BY wanted.scope COLLATE "C", wanted.key COLLATE "C"
ON CONFLICT (scope, key) DO UPDATE SET job_id = owned.job_id WHERE false
RETURNING owned.scope, owned.key;

-- name: hold_unique
-- Lock the jobs of these keys that nobody has started yet, until the transaction ends: a claim leaves them alone.
-- A later statement than the lock of the keys, which would read rows as they were before it. One that has expired is left
-- to the sweep that ends it.
SELECT job.id, job.name, CAST(job.args AS text), job.scope, job.key, job.exclusive, CAST(to_json(job.limits) AS text)
FROM {{keys of pairs}}
CROSS JOIN LATERAL (
    SELECT * FROM fencerow.jobs AS job
    WHERE job.id = owned.job_id AND job.state IN ('waiting', 'queued') AND NOT {{has expired}}
    OFFSET 0
    FOR UPDATE
) AS job;

-- name: read_unique
-- The jobs of these keys, and how those stand that are live. A later statement than all locks.
SELECT owned.scope, owned.key, owned.job_id, fencerow.us(owned.first_at), {{period counts}},
       CASE WHEN {{has expired}} THEN 'failed' ELSE job.state END, job.attempt, fencerow.us(fencerow.now())
FROM {{keys of pairs}}
LEFT JOIN LATERAL (
    SELECT live.state, live.attempt, live.expires_at FROM fencerow.jobs AS live WHERE live.id = owned.job_id OFFSET 0
) AS job ON true;

-- name: read_replaced
-- Which of these submits have replaced one of these jobs already.
SELECT note.job_id, note.detail ->> 'submit'
FROM fencerow.job_events AS note
WHERE note.job_id = ANY(CAST(:ids AS uuid[]))
  AND note.kind = 'replaced'
  AND note.detail ->> 'submit' IN (SELECT json_array_elements_text(CAST(:submits AS json)));

-- name: own_unique
-- Name the new jobs of these keys. Guard: the keys are locked by now.
UPDATE fencerow.unique_jobs AS owned
SET job_id = given.job_id,
    first_at = clock.now,
    until_at = clock.now + fencerow.seconds(given.period_s)
FROM json_to_recordset(CAST(:owned AS json)) AS given (
    scope text, key text, job_id uuid, period_s double precision
)
CROSS JOIN (SELECT fencerow.now() AS now) AS clock
WHERE owned.scope = given.scope
  AND owned.key = given.key;

-- name: unique_keys_of
-- The keys under which submits find these jobs, and since and until when.
SELECT owned.job_id, owned.scope, owned.key, fencerow.us(owned.first_at), fencerow.us(owned.until_at)
FROM fencerow.unique_jobs AS owned
WHERE owned.job_id = ANY(CAST(:ids AS uuid[]))
ORDER BY owned.scope, owned.key;

-- name: next_unique
-- The next keys, in their order; and of each whether its job is gone and its period over.
SELECT owned.scope, owned.key, {{is over}}
FROM fencerow.unique_jobs AS owned
WHERE (owned.scope, owned.key) > (CAST(:scope AS text), CAST(:key AS text))
ORDER BY owned.scope, owned.key
LIMIT CAST(:limit AS integer);

-- name: lock_over
-- Lock keys that are to be forgotten. Those that somebody submits under are left.
SELECT owned.scope, owned.key
FROM {{wanted pairs}}
CROSS JOIN LATERAL (
    SELECT * FROM fencerow.unique_jobs AS known WHERE known.scope = wanted.scope AND known.key = wanted.key
    OFFSET 0
    FOR UPDATE SKIP LOCKED
) AS owned;

-- name: purge_unique
-- Forget keys whose job is gone, and whose period is over.
-- Guard: both. The rows are locked by now, and only who has locked one names another job there.
DELETE FROM fencerow.unique_jobs AS owned
USING {{wanted pairs}}
WHERE owned.scope = wanted.scope
  AND owned.key = wanted.key
  AND {{is over}}
RETURNING owned.scope, owned.key;

-- name: stuck_unique_keys
-- Unique keys whose job has been due for long and does not run, those first that have waited longest. As many keys are
-- looked at as are named, so that a table with millions of keys makes no long statement.
SELECT owned.scope, owned.key, late.id, late.queue, late.state, fencerow.us(clock.now) - fencerow.us(late.run_at),
       (SELECT count(*) FROM fencerow.job_events AS note
        WHERE note.job_id = late.id AND note.kind = 'replaced')
FROM (SELECT each.scope, each.key, each.job_id
      FROM fencerow.unique_jobs AS each
      ORDER BY each.scope, each.key
      LIMIT CAST(:looked_at AS integer)) AS owned
CROSS JOIN (SELECT fencerow.now() AS now) AS clock
CROSS JOIN LATERAL (SELECT * FROM fencerow.jobs AS job WHERE job.id = owned.job_id OFFSET 0) AS late
WHERE late.state IN ('waiting', 'queued')
  AND NOT (late.state = 'waiting' AND late.gate IS NULL)  -- suspended: it is not late, whatever it was due
  AND late.run_at < clock.now - fencerow.seconds(CAST(:late_s AS double precision))
ORDER BY late.run_at, owned.scope, owned.key
LIMIT CAST(:limit AS integer);

-- name: unique_used
-- A row once there is a unique key.
SELECT 1 FROM fencerow.unique_jobs LIMIT 1;
