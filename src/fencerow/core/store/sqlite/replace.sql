-- A submit that stores no job, as one is there already: that one becomes what the submit says, or gets its key. A wing
-- decides that, under its locks (core/store/terms.py).

-- name: replace_jobs
-- Let jobs that have not started be what new submits say: all that a submit writes, in the same order, and nothing else.
-- Guard: waiting or queued, and no attempt of it has ever started.
{{jobs alike}},
given ({{all new columns}}) AS MATERIALIZED (
{{each of the jobs alike}}
)
UPDATE fencerow.jobs
SET ({{all new columns}}) = ({{given.all new columns}}){{what a replaced job begins with}}
FROM given
WHERE fencerow.jobs.id = given.id
  AND fencerow.jobs.state IN ('waiting', 'queued')
  AND fencerow.jobs.attempt = 0
RETURNING id, state;

-- name: note_replaced
-- Tell in the timelines which submit a job is from now on, and who asked for it.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT json_extract(given.value, '$.id'), 0, fencerow.now(), 'replaced', json_extract(given.value, '$.actor'),
       json_extract(given.value, '$.detail')
FROM json_each(:notes) AS given;

-- name: give_keys
-- Idempotency keys that this transaction has reserved belong to jobs that were there already. The ends of those do not
-- know of them: their lifetime counts from now.
-- Guard: the job for which the key was reserved.
UPDATE fencerow.keys
SET job_id = given.job_id,
    expires_at = fencerow.now() + CAST(lifetime_s * 1000000 AS INTEGER)
FROM (SELECT json_extract(value, '$.scope') AS scope, json_extract(value, '$.key') AS key,
             json_extract(value, '$.was') AS was, json_extract(value, '$.job_id') AS job_id
      FROM json_each(:keys)) AS given
WHERE fencerow.keys.scope = given.scope
  AND fencerow.keys.key = given.key
  AND fencerow.keys.job_id = given.was;
