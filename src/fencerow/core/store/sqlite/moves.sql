-- Moves that people and clocks make: cancel, expire, revive, delete.

-- name: cancel_idle
-- Cancel jobs that nobody runs. The rows are moved by archive in the same transaction.
-- Guard: waiting or queued.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'cancelled', :actor, json_object('reason', :reason)
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('waiting', 'queued');
UPDATE fencerow.jobs
SET state = 'cancelled',
    cancel_requested_at = COALESCE(cancel_requested_at, fencerow.now()),
    cancel_requested_by = COALESCE(cancel_requested_by, :actor),
    {{where it waits}} = NULL,
    ended_at = fencerow.now()
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state IN ('waiting', 'queued')
RETURNING id;

-- name: ask_cancel
-- Ask for the cancel of running jobs; their holders learn it with the next renewal at the latest.
-- Guard: running. Asking again keeps the first request.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'cancel_requested', :actor, json_object('reason', :reason)
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state = 'running';
UPDATE fencerow.jobs
SET cancel_requested_at = COALESCE(cancel_requested_at, fencerow.now()),
    cancel_requested_by = COALESCE(cancel_requested_by, :actor)
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state = 'running'
RETURNING id, holder;

-- name: expire
-- End jobs for which nobody waits any more. The rows are moved by archive in the same transaction.
-- Guard: waiting or queued, and past expires_at.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'expired', :actor, NULL
FROM fencerow.jobs AS job
WHERE job.state IN ('waiting', 'queued')
  AND job.id IN (SELECT due.id
             FROM fencerow.jobs AS due
             WHERE due.state IN ('waiting', 'queued') AND due.expires_at <= fencerow.now()
             ORDER BY due.expires_at
             LIMIT :limit);
UPDATE fencerow.jobs
SET state = 'failed',
    error = json_object('type', 'Expired', 'code', 'expired', 'message', 'nobody waits for this job any more'),
    {{where it waits}} = NULL,
    ended_at = fencerow.now()
WHERE state IN ('waiting', 'queued')
  AND id IN (SELECT due.id
             FROM fencerow.jobs AS due
             WHERE due.state IN ('waiting', 'queued') AND due.expires_at <= fencerow.now()
             ORDER BY due.expires_at
             LIMIT :limit)
RETURNING id;

-- fragment: revivable
-- Finished jobs that may be queued again.
-- Guard: no ephemeral job that succeeded; its id is spent, so a repeated submit must not find it live. None that is live at
-- the same time. And where an instant is given none that has ended later: it is not the end that somebody saw.
job.id IN (SELECT value FROM json_each(:ids))
  AND NOT (job.ephemeral = 1 AND job.state = 'succeeded')
  AND (:ended_by IS NULL OR job.ended_at <= :ended_by)
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS live WHERE live.id = job.id)

-- name: lock_finished
-- Finished jobs before their keys are looked at; the write lock is held already.
SELECT job.id, job.scope, job.key,
       {{what must end before it is revived}}
FROM fencerow.finished_jobs AS job
WHERE {{revivable}};

-- name: keep_key
-- Stop the lifetime of the keys of revived jobs.
-- Guard: the key still belongs to this job.
UPDATE fencerow.keys
SET expires_at = NULL
WHERE (scope, key, job_id) IN (SELECT json_extract(wanted.value, '$.scope'), json_extract(wanted.value, '$.key'),
                                      json_extract(wanted.value, '$.job_id')
                               FROM json_each(:keys) AS wanted)
RETURNING job_id;

-- name: revive
-- Put finished jobs back into their queues: budgets start anew, the attempt goes on, so no old attempt can touch them.
-- Guard: finished, and no other job must end before. A person asks for this; the system's own repetition is a retry.
-- A job that needs turns waits for them again. What a wing takes back of the end that
-- was is said there. The jobs are found once under the guard, as `revived`, and all that follows reads them there.
CREATE TEMP TABLE IF NOT EXISTS fencerow.revived ({{job columns}});
INSERT INTO fencerow.revived ({{job columns}})
SELECT {{job columns}}
FROM fencerow.finished_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('succeeded', 'failed', 'cancelled')
  AND {{what must end before it is revived}} IS NULL;
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT revived.id, revived.attempt, fencerow.now(), 'revived', :actor,
       json_object('was', revived.state, 'reason', :reason, 'ended_at_us', revived.ended_at)
FROM fencerow.revived AS revived;
INSERT INTO fencerow.jobs (
    id, queue, name, state, priority, awaited, run_at, attempt, {{budgets}},
    retention_s, scope, key, submitted_at, submitted_by, revived_at, args_bytes, args, options, tags, metadata, headers,
    ephemeral, subscribed, {{where it waits}}{{columns that a submit writes}}
)
SELECT
    id, queue, name, CASE WHEN (0{{who needs a turn}}) THEN 'waiting' ELSE 'queued' END,
    priority, awaited, fencerow.now(), attempt, {{budgets}},
    retention_s, scope, key, submitted_at, submitted_by, fencerow.now(), args_bytes, args, options, tags, metadata, headers,
    ephemeral, subscribed, {{where it waits first}}{{columns that a submit writes}}
FROM fencerow.revived
WHERE true
RETURNING id, queue, priority, run_at, state = 'waiting', lane;
{{when jobs are revived}}
DELETE FROM fencerow.finished_jobs WHERE id IN (SELECT revived.id FROM fencerow.revived AS revived);
DELETE FROM fencerow.revived;

-- name: delete
-- Remove finished jobs; forget_notes follows in the same transaction. Their keys live on until their own expiry.
-- Guard: finished.
DELETE FROM fencerow.finished_jobs
WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING id;

-- name: forget_notes
-- Remove what was noted about jobs that this transaction has removed.
DELETE FROM fencerow.job_events WHERE job_id IN (SELECT value FROM json_each(:ids));
DELETE FROM fencerow.job_logs WHERE job_id IN (SELECT value FROM json_each(:ids));
DELETE FROM fencerow.job_progress WHERE job_id IN (SELECT value FROM json_each(:ids));
