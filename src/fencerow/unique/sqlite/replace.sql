-- A submit that stores no job, as one of its key waits: that one becomes what the submit says.

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
