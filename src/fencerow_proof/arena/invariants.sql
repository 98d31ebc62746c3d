-- What must hold whenever no transaction is open: each query returns the rows that break it. For both engines.

-- name: in_one_table
-- A job is live or finished, never both.
SELECT job.id FROM fencerow.jobs AS job JOIN fencerow.finished_jobs AS finished ON finished.id = job.id;

-- name: spent_is_over
-- An ephemeral job that succeeded is never live again.
SELECT spent.id FROM fencerow.spent_ids AS spent JOIN fencerow.jobs AS job ON job.id = spent.id;

-- name: live_state
-- What lies in the live table has not ended, but for a failure that the database refused to move (fail_in_place).
SELECT job.id, job.state, job.ended_at FROM fencerow.jobs AS job
WHERE (job.state NOT IN ('waiting', 'queued', 'running') OR job.ended_at IS NOT NULL)
  AND NOT (job.state = 'failed' AND job.ended_at IS NOT NULL AND CAST(job.error AS text) LIKE '%outcome_refused%');

-- name: finished_state
-- What lies in the finished table has ended, in a final state.
SELECT job.id, job.state FROM fencerow.finished_jobs AS job
WHERE job.state NOT IN ('succeeded', 'failed', 'cancelled') OR job.ended_at IS NULL;

-- name: running_is_held
-- A running job has a holder and an attempt, any other job that has not ended has no holder.
SELECT job.id, job.state, job.holder, job.attempt FROM fencerow.jobs AS job
WHERE job.ended_at IS NULL
  AND ((job.state = 'running') <> (job.holder IS NOT NULL) OR (job.state = 'running' AND job.attempt < 1));

-- name: cancel_is_obeyed
-- A job of which a cancel was asked is never queued again.
SELECT job.id, job.state FROM fencerow.jobs AS job
WHERE job.state <> 'running' AND job.cancel_requested_at IS NOT NULL AND job.ended_at IS NULL;

-- name: success_has_result
-- A success has its result and no error; what did not succeed has no result.
SELECT job.id, job.state FROM fencerow.finished_jobs AS job
WHERE (job.state = 'succeeded') <> (job.result IS NOT NULL);

-- name: budgets
-- No budget is overdrawn, and no attempt is counted twice.
SELECT job.id, job.attempt, job.failures, job.crashes, job.snoozes FROM fencerow.all_jobs AS job
WHERE job.failures > job.attempts_max OR job.crashes > job.crashes_max
   OR job.failures + job.crashes + job.snoozes > job.attempt;

-- name: live_key_lives
-- The lifetime of a key has not begun while the job that owns it lives.
SELECT owned.scope, owned.key, job.id
FROM fencerow.keys AS owned JOIN fencerow.jobs AS job ON job.id = owned.job_id
WHERE owned.expires_at IS NOT NULL;

-- name: ended_key_ends
-- The lifetime of a key has begun when the job that owns it has ended.
SELECT owned.scope, owned.key, job.id
FROM fencerow.keys AS owned JOIN fencerow.finished_jobs AS job ON job.id = owned.job_id
WHERE owned.expires_at IS NULL;

-- name: key_has_job
-- A key whose lifetime has not begun has a live job.
SELECT owned.scope, owned.key, owned.job_id
FROM fencerow.keys AS owned
WHERE owned.expires_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = owned.job_id);

-- name: notes_have_job
-- What was noted about a job goes with it, or with the last that is remembered of it.
SELECT note.job_id FROM fencerow.job_events AS note
WHERE NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = note.job_id)
  AND NOT EXISTS (SELECT 1 FROM fencerow.spent_ids AS spent WHERE spent.id = note.job_id);

-- name: notes_within_attempts
-- Nothing was noted for an attempt that there was not.
SELECT note.job_id, note.attempt, job.attempt
FROM fencerow.job_progress AS note JOIN fencerow.all_jobs AS job ON job.id = note.job_id
WHERE note.attempt > job.attempt;

-- name: workers_end
-- A worker has an end exactly when it is not alive.
SELECT worker.id, worker.state FROM fencerow.workers AS worker
WHERE (worker.state = 'alive') <> (worker.ended_at IS NULL);

-- name: one_job_per_key
-- Of the live jobs at most one is the owner of its key; others lost it to age before they were revived.
SELECT job.scope, job.key FROM fencerow.jobs AS job
JOIN fencerow.keys AS owned ON owned.scope = job.scope AND owned.key = job.key AND owned.job_id = job.id
GROUP BY job.scope, job.key HAVING count(*) > 1;

-- name: gate_is_waited_at
-- Nobody is at a gate but whoever waits. Who waits at none has had an attempt, or was submitted so: it needs no turn yet.
SELECT job.id, job.state, job.gate FROM fencerow.all_jobs AS job
WHERE job.gate IS NOT NULL AND job.state <> 'waiting';

-- name: suspended_hold_nothing
-- Who waits at no gate was suspended by its attempt, if it has had one, and not woken since.
SELECT job.id, job.attempt FROM fencerow.jobs AS job
WHERE job.state = 'waiting' AND job.gate IS NULL AND job.attempt > 0
  AND COALESCE((SELECT note.kind FROM fencerow.job_events AS note
                WHERE note.job_id = job.id AND note.kind IN ('suspended', 'woken', 'retried', 'snoozed', 'released', 'revived')
                ORDER BY note.id DESC LIMIT 1), '') <> 'suspended';

-- name: turns_within_their_keys
-- Of no key have more jobs a turn than the least of them allows.
SELECT job.exclusive FROM fencerow.jobs AS job
WHERE job.exclusive IS NOT NULL AND job.state IN ('queued', 'running')
GROUP BY job.exclusive HAVING count(*) > min(COALESCE(job.exclusive_at_once, 1));

-- name: ends_are_handed_over
-- The end of a finished job that stands in a line is written there.
SELECT handover.job_id FROM fencerow.handovers AS handover
JOIN fencerow.finished_jobs AS job ON job.id = handover.job_id
WHERE handover.state IS NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS live WHERE live.id = handover.job_id);

-- name: ends_are_those_of_their_jobs
-- What stands there is how the job ended, and no live job stands there with an end.
SELECT handover.job_id FROM fencerow.handovers AS handover
JOIN fencerow.all_jobs AS job ON job.id = handover.job_id
WHERE handover.state IS NOT NULL
  AND (handover.state <> job.state OR handover.attempt <> job.attempt);
