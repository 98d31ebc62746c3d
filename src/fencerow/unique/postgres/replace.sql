-- A submit that stores no job, as one of its key waits: that one becomes what the submit says.

-- name: replace_jobs
-- Let jobs that have not started be what new submits say: all that a submit writes, in the same order, and nothing else.
-- Guard: waiting or queued, and no attempt of it has ever started. The rows are locked by now.
{{jobs alike}},
given ({{all new columns}}) AS MATERIALIZED (
{{each of the jobs alike}}
)
UPDATE fencerow.jobs AS job
SET ({{all new columns}}) = ROW({{given.all new columns}}){{what a replaced job begins with}}
FROM given
WHERE job.id = given.id
  AND job.state IN ('waiting', 'queued')
  AND job.attempt = 0
RETURNING job.id, job.state;

-- name: note_replaced
-- Tell in the timelines which submit a job is from now on, and who asked for it.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT given.id, 0, (SELECT fencerow.now()), 'replaced', given.actor, given.detail
FROM json_to_recordset(CAST(:notes AS json)) AS given (id uuid, actor text, detail json);
