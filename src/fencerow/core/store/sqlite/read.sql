-- Reading: jobs are looked up over live and finished in one statement, and come back as one JSON document each.
-- A stored text that is no JSON any more shows as null; it must not hide the job.

-- fragment: all but payloads
-- What is known of a job, as names and values of a JSON object, but for its payloads, which may be large.
{{fields of job.shown columns}},
'suspect', json(CASE WHEN job.suspect THEN 'true' ELSE 'false' END),
'run_at_us', job.run_at, 'claimed_at_us', job.claimed_at, 'deadline_at_us', job.deadline_at,
'cancel_requested_at_us', job.cancel_requested_at, 'expires_at_us', job.expires_at,
'submitted_at_us', job.submitted_at, 'revived_at_us', job.revived_at, 'ended_at_us', job.ended_at,
'tags', CASE WHEN json_valid(job.tags) THEN json(job.tags) END,
'error', CASE WHEN json_valid(job.error) THEN json(job.error) END,
'progress', progress.percent, 'progress_note', progress.note{{fields of wings}}

-- name: read
-- Jobs by id, with everything that is known of them.
SELECT json_object(
           {{all but payloads}},
           'args', CASE WHEN json_valid(job.args) THEN json(job.args) END,
           'options', CASE WHEN json_valid(job.options) THEN json(job.options) END,
           'metadata', CASE WHEN json_valid(job.metadata) THEN json(job.metadata) END,
           'headers', CASE WHEN json_valid(job.headers) THEN json(job.headers) END,
           'result', CASE WHEN json_valid(job.result) THEN json(job.result) END
       )
FROM fencerow.all_jobs AS job
LEFT JOIN fencerow.job_progress AS progress ON progress.job_id = job.id AND progress.attempt = job.attempt
WHERE job.id IN (SELECT value FROM json_each(:ids));

-- name: key_owner
-- The job that owns an idempotency key, and whether the key's lifetime is over.
SELECT owned.job_id, owned.fingerprint,
       owned.expires_at IS NOT NULL AND owned.expires_at <= fencerow.now()
FROM fencerow.keys AS owned
WHERE owned.scope = :scope AND owned.key = :key;

-- name: outcomes
-- How these jobs stand: what those who wait for results ask. Results are the text that was stored.
SELECT job.id, job.state, job.result, job.error
FROM fencerow.all_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('succeeded', 'failed', 'cancelled');

-- name: mark_awaited
-- Note that somebody waits for these jobs, so that their end is announced. Says which are live.
UPDATE fencerow.jobs
SET awaited = 1
WHERE id IN (SELECT value FROM json_each(:ids))
  AND awaited = 0
RETURNING id;

-- name: existing
-- Which of these ids exist, live or finished.
SELECT job.id FROM fencerow.all_jobs AS job WHERE job.id IN (SELECT value FROM json_each(:ids));

-- name: releases
-- How often a job was given back for a reason that begins so, since an attempt of it last came to an end or a person
-- revived it, and since when; and the time now.
SELECT count(*), min(note.at), fencerow.now()
FROM fencerow.job_events AS note
WHERE note.job_id = :id
  AND note.kind = 'released'
  AND instr(json_extract(CASE WHEN json_valid(note.detail) THEN note.detail END, '$.detail.reason'), :reason) = 1
  AND note.id > (SELECT COALESCE(max(ended.id), 0)
                 FROM fencerow.job_events AS ended
                 WHERE ended.job_id = :id
                   AND ended.kind IN ('retried', 'snoozed', 'suspended', 'timed_out', 'revived'));

-- name: clock
-- The database's time, by our own clock.
SELECT fencerow.now();
