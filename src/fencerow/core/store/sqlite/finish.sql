-- Ending an attempt. Every statement names the holder and the attempt: a worker that lost its lease changes nothing.
-- They are group commits: outcomes come as one JSON document, and a missing row means "lost", which is settled by
-- reading (read_fences). SQLite cannot change two tables in one statement, so a query here is a short script under the
-- file's one write lock: each statement repeats the guard, and between them nobody else can write.
-- The + before holder keeps the planner off the holder's index: it would compare every job the worker holds with every
-- outcome, instead of looking each outcome's job up by its id.

-- fragment: handover of the job
-- The end goes into the line in which the job stands, if it stands in one. Its first end is the one that counts. Where no
-- end is still to come, this ends at once.
fencerow.handovers.job_id = job.id
  AND fencerow.handovers.state IS NULL
  AND EXISTS (SELECT 1 FROM fencerow.handovers AS any_handover WHERE any_handover.state IS NULL)

-- fragment: somebody waits for the ended
-- A receiver waits for it as a caller may: its end is announced.
awaited OR EXISTS (SELECT 1
                   FROM fencerow.handovers AS handover
                   WHERE handover.job_id = id AND handover.state IS NOT NULL AND handover.confirmed_at IS NULL)

-- name: succeed
-- Store the results of attempts and move their jobs to the finished ones. An ephemeral job leaves its id alone,
-- unless somebody waits for its result: then it is kept for a moment. The end of a job that was subscribed to is an event, and
-- one that is to be handed over goes into its line.
-- COALESCE: in the RETURNING of a DELETE from a table without rowids SQLite 3.40 says of each column that it IS NOT NULL.
-- Guard: still running, under this holder, in this attempt. Where no job is ephemeral, or none subscribed
-- to, the statements about them end at once. A job that has ended already (a row that was put back by hand) leaves
-- the live ones, and its first end stands.
INSERT INTO fencerow.spent_ids (id, attempt, ended_at)
SELECT job.id, job.attempt, fencerow.now()
{{outcomes under the fence}}
  AND job.ephemeral = 1
  AND EXISTS (SELECT 1 FROM fencerow.jobs AS any_job WHERE any_job.ephemeral = 1)
ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt, ended_at = excluded.ended_at;
UPDATE fencerow.keys
SET expires_at = fencerow.now() + CAST(lifetime_s * 1000000 AS INTEGER)
WHERE expires_at IS NULL
  AND (scope, key, job_id) IN (SELECT job.scope, job.key, job.id
                               {{outcomes under the fence}}
                                 AND job.key IS NOT NULL
                                 AND EXISTS (SELECT 1 FROM fencerow.jobs AS any_job WHERE any_job.key IS NOT NULL));
INSERT INTO fencerow.finished_jobs (
    id, queue, name, state, priority, suspect, awaited, subscribed, ephemeral, strict, run_at, attempt, failures, crashes, snoozes,
    attempts_max, crashes_max, snoozes_max, timeout_s, holder, claimed_at, deadline_at,
    cancel_requested_at, cancel_requested_by, expires_at, retention_s, scope, key, exclusive, exclusive_slots, limits, gate,
    turned_at, share, affinity, affinity_wait_s, submitted_at, submitted_by, revived_at, ended_at, period, args_bytes, args,
    options, tags, metadata, headers, result, error
)
SELECT
    job.id, job.queue, job.name, 'succeeded', job.priority, job.suspect, job.awaited, job.subscribed, job.ephemeral, job.strict,
    job.run_at, job.attempt, job.failures, job.crashes, job.snoozes, job.attempts_max, job.crashes_max, job.snoozes_max,
    job.timeout_s, job.holder, job.claimed_at, job.deadline_at, job.cancel_requested_at, job.cancel_requested_by, job.expires_at,
    CASE WHEN job.ephemeral = 1 THEN :awaited_s ELSE job.retention_s END, job.scope, job.key, job.exclusive,
    job.exclusive_slots, job.limits, job.gate, job.turned_at, job.share, job.affinity, job.affinity_wait_s, job.submitted_at,
    job.submitted_by, job.revived_at, (SELECT fencerow.now()), job.period, job.args_bytes, job.args, job.options, job.tags,
    job.metadata, job.headers, json_extract(o.value, '$.result'), NULL
{{outcomes under the fence}}
  AND (job.awaited = 1 OR job.ephemeral = 0)
ON CONFLICT (id) DO NOTHING;
INSERT INTO fencerow.events (topic, key, bucket, data, bytes, published_at)
SELECT 'job.succeeded', job.id,
       (instr('0123456789abcdef', substr(job.id, -3, 1)) - 1) * 256
       + (instr('0123456789abcdef', substr(job.id, -2, 1)) - 1) * 16 + instr('0123456789abcdef', substr(job.id, -1)) - 1,
       json_object('job', job.id, 'name', job.name, 'queue', job.queue, 'attempt', job.attempt, 'key', job.key,
                   CASE WHEN substr(json_extract(o.value, '$.result'), 1, 19) = '{"fencerow:outside"' THEN 'outside'
                        ELSE 'result' END,
                   CASE WHEN substr(json_extract(o.value, '$.result'), 1, 19) = '{"fencerow:outside"' THEN json('true')
                        ELSE json(json_extract(o.value, '$.result')) END),
       length(json_extract(o.value, '$.result')) + 200, fencerow.now()
{{outcomes under the fence}}
  AND job.subscribed = 1
  AND EXISTS (SELECT 1 FROM fencerow.jobs AS any_job WHERE any_job.subscribed = 1);
UPDATE fencerow.handovers
SET state = 'succeeded', attempt = job.attempt, result = json_extract(o.value, '$.result'), ended_at = fencerow.now(),
    held_until = fencerow.now() + CAST(hold_s * 1000000 AS INTEGER)
{{outcomes under the fence}}
  AND {{handover of the job}};
INSERT INTO fencerow.gate_arrivals (gate)
SELECT 'key:' || job.exclusive
{{outcomes under the fence}}
  AND job.exclusive IS NOT NULL
  AND {{any job needs turns}}
UNION
SELECT 'limit:' || named.value
FROM json_each(:outcomes) AS o
JOIN fencerow.jobs AS job ON job.id = json_extract(o.value, '$.id')
JOIN json_each(job.limits) AS named
WHERE job.state = 'running'
  AND +job.holder = :holder
  AND job.attempt = json_extract(o.value, '$.attempt')
  AND {{any job needs turns}};
DELETE FROM fencerow.jobs WHERE id IN (
SELECT job.id
{{outcomes under the fence}}
)
RETURNING id, {{somebody waits for the ended}}, COALESCE(exclusive, limits) IS NOT NULL;

-- name: fail
-- End attempts whose jobs shall not run again. The rows are moved by archive in the same transaction. What a handler chose
-- itself, and snoozes that are spent, no breaker is told of.
-- Guard: still running, under this holder, in this attempt.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'failed', :holder, json_object('claimed_at_us', job.claimed_at, 'error', json(json_extract(o.value, '$.error')))
{{outcomes under the fence}};
{{failures of the outcomes}}
  AND COALESCE(json_extract(json_extract(o.value, '$.error'), '$.code'), '') NOT IN ('failed_by_handler', 'snoozes_exhausted');
UPDATE fencerow.jobs
SET state = 'failed',
    failures = failures + 1,
    error = json_extract(o.value, '$.error'),
    ended_at = fencerow.now()
{{outcomes under the fence of the row}}
RETURNING id;

-- name: requeue
-- Give running jobs back to their queue: after a failure (retried), a snooze (snoozed) or untouched (released).
-- Guard: still running, under this holder, in this attempt, and nobody asked for a cancel.
-- Without delay_s the job keeps its place in its lane; one that lies ahead, because the clock went back since, is now.
-- With a delay it gives up the turns that it needs to run, unless it is strict, and waits for them again.
-- With affinity it waits for its label again.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), json_extract(o.value, '$.kind'), :holder, json_object('claimed_at_us', job.claimed_at,
                   'run_at_us', COALESCE(fencerow.now() + CAST(json_extract(o.value, '$.delay_s') * 1000000 AS INTEGER),
                                         min(job.run_at, fencerow.now())),
                   'detail', json(json_extract(o.value, '$.detail')))
{{outcomes under the fence}}
  AND job.cancel_requested_at IS NULL;
{{failures of the outcomes}}
  AND job.cancel_requested_at IS NULL
  AND json_extract(o.value, '$.kind') = 'retried';
UPDATE fencerow.jobs
SET state = CASE WHEN json_extract(o.value, '$.delay_s') IS NOT NULL AND {{gives its turns up}} THEN 'waiting'
                 ELSE {{back in line}} END,
    gate = CASE WHEN json_extract(o.value, '$.delay_s') IS NOT NULL AND {{gives its turns up}} THEN {{first gate}} END,
    failures = failures + json_extract(o.value, '$.failures'),
    snoozes = snoozes + json_extract(o.value, '$.snoozes'),
    suspect = suspect AND json_extract(o.value, '$.kind') = 'released',
    run_at = COALESCE(fencerow.now() + CAST(json_extract(o.value, '$.delay_s') * 1000000 AS INTEGER),
                      min(run_at, fencerow.now())),
    holder = NULL,
    deadline_at = NULL
{{outcomes under the fence of the row}}
  AND fencerow.jobs.cancel_requested_at IS NULL
RETURNING id, queue, priority, run_at, state = 'waiting' AND COALESCE(affinity, '') = '', affinity;
INSERT INTO fencerow.gate_arrivals (gate)
{{gates of the outcomes}};

-- name: stop
-- End running jobs as cancelled. The rows are moved by archive in the same transaction.
-- Guard: still running, under this holder, in this attempt, and a cancel was asked.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'stopped', :holder, json_object('claimed_at_us', job.claimed_at, 'asked_by', job.cancel_requested_by)
{{outcomes under the fence}}
  AND job.cancel_requested_at IS NOT NULL;
UPDATE fencerow.jobs
SET state = 'cancelled',
    error = json_extract(o.value, '$.detail'),
    ended_at = fencerow.now()
{{outcomes under the fence of the row}}
  AND fencerow.jobs.cancel_requested_at IS NOT NULL
RETURNING id;

-- name: park
-- Fail attempts in their place among the live jobs, where the database refuses to move them to the finished ones:
-- nothing else is written, so that nothing else can refuse it. They are moved later, one by one (archive).
-- Guard: still running, under this holder, in this attempt.
UPDATE fencerow.jobs
SET state = 'failed',
    failures = failures + 1,
    error = json_extract(o.value, '$.error'),
    ended_at = fencerow.now()
{{outcomes under the fence of the row}}
RETURNING id, awaited, COALESCE(exclusive, limits) IS NOT NULL;

-- name: parked
-- Jobs that have ended and could not be moved, the oldest first.
SELECT job.id
FROM fencerow.jobs AS job
WHERE job.state IN ('succeeded', 'failed', 'cancelled')
  AND job.ended_at IS NOT NULL
ORDER BY job.ended_at
LIMIT :limit;

-- name: archive
-- Move jobs that an earlier statement of this transaction brought to a final state to the finished ones,
-- start the lifetime of their keys, tell those who subscribed to them, and write the ends into the lines of their handovers.
-- Guard: the state is final. A job that has ended already (a row that was put back by hand) leaves the live ones, and its
-- first end stands: one such row must not end a reaper, an expiry or a worker.
INSERT INTO fencerow.finished_jobs
SELECT job.*
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('succeeded', 'failed', 'cancelled')
ON CONFLICT (id) DO NOTHING;
INSERT INTO fencerow.events (topic, key, bucket, data, bytes, published_at)
SELECT 'job.' || job.state, job.id,
       (instr('0123456789abcdef', substr(job.id, -3, 1)) - 1) * 256
       + (instr('0123456789abcdef', substr(job.id, -2, 1)) - 1) * 16 + instr('0123456789abcdef', substr(job.id, -1)) - 1,
       json_object('job', job.id, 'name', job.name, 'queue', job.queue, 'attempt', job.attempt, 'key', job.key,
                   'error', json(job.error)),
       COALESCE(length(job.error), 0) + 200, fencerow.now()
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('succeeded', 'failed', 'cancelled')
  AND job.subscribed = 1;
UPDATE fencerow.handovers
SET state = job.state, attempt = job.attempt, error = job.error, ended_at = COALESCE(job.ended_at, fencerow.now()),
    held_until = COALESCE(job.ended_at, fencerow.now()) + CAST(hold_s * 1000000 AS INTEGER)
FROM json_each(:ids) AS given JOIN fencerow.jobs AS job ON job.id = given.value
WHERE job.state IN ('succeeded', 'failed', 'cancelled')
  AND {{handover of the job}};
INSERT INTO fencerow.gate_arrivals (gate)
SELECT 'key:' || job.exclusive
FROM json_each(:ids) AS given JOIN fencerow.jobs AS job ON job.id = given.value
WHERE job.state IN ('succeeded', 'failed', 'cancelled') AND job.exclusive IS NOT NULL
UNION
SELECT 'limit:' || named.value
FROM json_each(:ids) AS given JOIN fencerow.jobs AS job ON job.id = given.value
JOIN json_each(job.limits) AS named
WHERE job.state IN ('succeeded', 'failed', 'cancelled');
DELETE FROM fencerow.jobs
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state IN ('succeeded', 'failed', 'cancelled')
RETURNING id, {{somebody waits for the ended}}, COALESCE(exclusive, limits) IS NOT NULL;
UPDATE fencerow.keys
SET expires_at = fencerow.now() + CAST(lifetime_s * 1000000 AS INTEGER)
WHERE expires_at IS NULL
  AND (scope, key, job_id) IN (SELECT ended.scope, ended.key, ended.id
                               FROM fencerow.finished_jobs AS ended
                               WHERE ended.key IS NOT NULL AND ended.id IN (SELECT value FROM json_each(:ids)));

-- name: read_fences
-- What became of these jobs: state, holder and attempt over live and finished together, and of ephemeral ones
-- that succeeded what is left of them.
-- A lost reply is resolved by this, never by a blind repeat.
SELECT job.id, job.state, job.holder, job.attempt, job.cancel_requested_at IS NOT NULL, false
FROM fencerow.all_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT spent.id, 'succeeded', NULL, spent.attempt, false, true
FROM fencerow.spent_ids AS spent
WHERE spent.id IN (SELECT value FROM json_each(:ids));
