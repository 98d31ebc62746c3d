-- Reading: jobs are looked up over live and finished in one statement, and come back as one JSON document each.

-- fragment: all but payloads
-- What is known of a job, as names and values of a JSON object, but for its payloads, which may be large.
{{fields of job.shown columns}},
'suspect', job.suspect,
'run_at_us', fencerow.us(job.run_at), 'claimed_at_us', fencerow.us(job.claimed_at), 'deadline_at_us', fencerow.us(job.deadline_at),
'cancel_requested_at_us', fencerow.us(job.cancel_requested_at), 'expires_at_us', fencerow.us(job.expires_at),
'submitted_at_us', fencerow.us(job.submitted_at), 'revived_at_us', fencerow.us(job.revived_at), 'ended_at_us', fencerow.us(job.ended_at),
'tags', job.tags, 'error', job.error,
'progress', progress.percent, 'progress_note', progress.note{{fields of wings}}

-- fragment: progress
-- What the attempt of each job said last. It is looked up by the job's id (OFFSET 0): joined, each job is compared with each progress,
-- where the planner believes that there is none.
LEFT JOIN LATERAL (
    SELECT said.percent, said.note FROM fencerow.job_progress AS said WHERE said.job_id = job.id AND said.attempt = job.attempt OFFSET 0
) AS progress ON true

-- name: read
-- Jobs by id, with everything that is known of them.
SELECT CAST(json_build_object(
           {{all but payloads}},
           'args', job.args, 'options', job.options, 'metadata', job.metadata, 'headers', job.headers, 'result', job.result
       ) AS text)
FROM fencerow.all_jobs AS job
{{progress}}
WHERE job.id = ANY(CAST(:ids AS uuid[]));

-- name: key_owner
-- The job that owns an idempotency key, and whether the key's lifetime is over.
SELECT owned.job_id, owned.fingerprint,
       owned.expires_at IS NOT NULL AND owned.expires_at <= (SELECT fencerow.now())
FROM fencerow.keys AS owned
WHERE owned.scope = :scope AND owned.key = :key;

-- name: outcomes
-- How these jobs stand: what those who wait for results ask. Results are the text that was stored.
SELECT job.id, job.state, CAST(job.result AS text), CAST(job.error AS text)
FROM fencerow.all_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state IN ('succeeded', 'failed', 'cancelled');

-- name: mark_awaited
-- Note that somebody waits for these jobs, so that their end is announced. Says which are live.
UPDATE fencerow.jobs AS job
SET awaited = true
WHERE job.id = ANY(ARRAY(
        SELECT live.id FROM fencerow.jobs AS live
        WHERE live.id = ANY(CAST(:ids AS uuid[])) AND NOT live.awaited
        FOR UPDATE SKIP LOCKED
    ))
RETURNING job.id;

-- name: existing
-- Which of these ids exist, live or finished.
SELECT job.id FROM fencerow.all_jobs AS job WHERE job.id = ANY(CAST(:ids AS uuid[]));

-- name: releases
-- How often a job was given back for a reason that begins so, since an attempt of it last came to an end or a person
-- revived it, and since when; and the time now.
SELECT count(*), fencerow.us(min(note.at)), fencerow.us((SELECT fencerow.now()))
FROM fencerow.job_events AS note
WHERE note.job_id = CAST(:id AS uuid)
  AND note.kind = 'released'
  AND starts_with(note.detail -> 'detail' ->> 'reason', CAST(:reason AS text))
  AND note.id > (SELECT COALESCE(max(ended.id), 0)
                 FROM fencerow.job_events AS ended
                 WHERE ended.job_id = CAST(:id AS uuid)
                   AND ended.kind IN ('retried', 'snoozed', 'suspended', 'timed_out', 'revived'));

-- name: clock
-- The database's time, by our own clock.
SELECT fencerow.us(fencerow.now());
