-- Ending an attempt. Every statement names the holder and the attempt: a worker that lost its lease changes nothing.
-- They are group commits: outcomes come as one JSON document, and a missing row means "lost", which is settled by
-- reading (read_fences). SQLite cannot change two tables in one statement, so a query here is a short script under the
-- file's one write lock: each statement repeats the guard, and between them nobody else can write. What leaves the live
-- jobs is found once under the guard, and all that follows reads it in the table `ended`.
-- The + before holder keeps the planner off the holder's index: it would compare every job the worker holds with every
-- outcome, instead of looking each outcome's job up by its id.

-- fragment: into the ended
-- The table belongs to this connection and nobody else sees it. A script leaves it empty, and one that was rolled back has
-- left nothing in it.
CREATE TEMP TABLE IF NOT EXISTS fencerow.ended ({{job columns}});
INSERT INTO fencerow.ended ({{job columns}})

-- fragment: what an end writes
-- Whatever ended them: the lifetime of their keys begins, they lie among the finished jobs, and what wings bring follows. All
-- of it reads `ended`, which has the jobs that leave the live ones, with all columns as they end. A job that has ended
-- already (a row that was put back by hand) leaves the live ones, and its first end stands.
INSERT INTO fencerow.spent_ids (id, attempt, ended_at)
SELECT ended.id, ended.attempt, ended.ended_at
FROM fencerow.ended AS ended
WHERE ended.ephemeral = 1 AND ended.state = 'succeeded'
ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt, ended_at = excluded.ended_at;
UPDATE fencerow.keys
SET expires_at = fencerow.now() + CAST(lifetime_s * 1000000 AS INTEGER)
WHERE expires_at IS NULL
  AND (scope, key, job_id) IN (SELECT ended.scope, ended.key, ended.id
                               FROM fencerow.ended AS ended
                               WHERE ended.key IS NOT NULL);
INSERT INTO fencerow.finished_jobs ({{job columns}})
SELECT {{job columns}}
FROM fencerow.ended
WHERE awaited = 1 OR ephemeral = 0 OR state <> 'succeeded'
ON CONFLICT (id) DO NOTHING;
{{when jobs have ended}}
DELETE FROM fencerow.jobs WHERE id IN (SELECT ended.id FROM fencerow.ended AS ended)

-- fragment: what follows an end
-- Last is told of each whether somebody waits for it, and whether it had turns that are free now.
{{what an end writes}};
SELECT ended.id, ended.awaited{{whose end is awaited}}, (0{{who needs a turn}})
FROM fencerow.ended AS ended;
DELETE FROM fencerow.ended;

-- fragment: success
-- An ephemeral job leaves its id alone, unless somebody waits for its result: then it is kept for a moment. What follows
-- an end (its event, the turns that are free) is said by the wings.
{{into the ended}}
SELECT
    job.id, job.queue, job.name, 'succeeded', job.priority, job.suspect, job.awaited, job.subscribed, job.ephemeral,
    job.run_at, job.attempt, job.failures, job.crashes, job.snoozes, {{job.budgets}},
    job.holder, job.claimed_at, job.deadline_at, job.cancel_requested_at, job.cancel_requested_by, job.expires_at,
    CASE WHEN job.ephemeral = 1 THEN :awaited_s ELSE job.retention_s END, job.scope, job.key,
    job.submitted_at,
    job.submitted_by, job.revived_at, (SELECT fencerow.now()), job.period, job.args_bytes, job.args, job.options, job.tags,
    job.metadata, job.headers, json_extract(o.value, '$.result'), NULL{{job.columns of wings}}

-- name: succeed
-- Store the results of attempts and move their jobs to the finished ones.
-- Guard: still running, under this holder, in this attempt.
{{success}}
{{outcomes under the fence}};
{{what follows an end}}

-- name: succeed_first
-- The same, and what is told stands in one row, the ids as lists. Here it costs nothing that a job may have ended before.
-- Guard: that of `succeed`.
{{success}}
{{outcomes under the fence}};
{{what an end writes}};
SELECT group_concat(ended.id), group_concat(CASE WHEN ended.awaited{{whose end is awaited}} THEN ended.id END), max(0{{who needs a turn}})
FROM fencerow.ended AS ended;
DELETE FROM fencerow.ended;

-- name: fail
-- End attempts whose jobs shall not run again. The rows are moved by archive in the same transaction. What a handler chose
-- itself, and snoozes that are spent, no breaker is told of.
-- Guard: still running, under this holder, in this attempt.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'failed', :holder, json_object('claimed_at_us', job.claimed_at, 'error', json(json_extract(o.value, '$.error')))
{{outcomes under the fence}};
{{into the moved}}
SELECT job.id
{{outcomes under the fence}}
  AND COALESCE(json_extract(json_extract(o.value, '$.error'), '$.code'), '') NOT IN ('failed_by_handler', 'snoozes_exhausted');
{{when attempts have failed}}
{{out of the moved}};
{{fail where they lie}}
RETURNING id;

-- name: requeue
-- Give running jobs back to their queue: after a failure (retried), a snooze (snoozed) or untouched (released).
-- Guard: still running, under this holder, in this attempt, and nobody asked for a cancel.
-- Without delay_s the job keeps its place in its lane; one that lies ahead, because the clock went back since, is now.
-- With a delay it gives up the turns that it needs to run, unless it is strict, and waits for them again.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), json_extract(o.value, '$.kind'), :holder, json_object('claimed_at_us', job.claimed_at,
                   'run_at_us', COALESCE(fencerow.now() + CAST(json_extract(o.value, '$.delay_s') * 1000000 AS INTEGER),
                                         min(job.run_at, fencerow.now())),
                   'detail', json(json_extract(o.value, '$.detail')))
{{outcomes under the fence}}
  AND job.cancel_requested_at IS NULL;
{{into the moved}}
SELECT job.id
{{outcomes under the fence}}
  AND job.cancel_requested_at IS NULL
  AND json_extract(o.value, '$.kind') = 'retried';
{{when attempts have failed}}
{{out of the moved}};
UPDATE fencerow.jobs
SET state = CASE WHEN json_extract(o.value, '$.delay_s') IS NOT NULL AND (0{{whose turn is over}}) THEN 'waiting'
                 ELSE 'queued' END,
    {{where it waits}} = CASE WHEN json_extract(o.value, '$.delay_s') IS NOT NULL AND (0{{whose turn is over}}) THEN {{where it waits first}} END,
    failures = failures + json_extract(o.value, '$.failures'),
    snoozes = snoozes + json_extract(o.value, '$.snoozes'),
    suspect = suspect AND json_extract(o.value, '$.kind') = 'released',
    run_at = COALESCE(fencerow.now() + CAST(json_extract(o.value, '$.delay_s') * 1000000 AS INTEGER),
                      min(run_at, fencerow.now())),
    holder = NULL,
    deadline_at = NULL
{{outcomes under the fence of the row}}
  AND fencerow.jobs.cancel_requested_at IS NULL
RETURNING id, queue, priority, run_at, state = 'waiting', lane;
{{when outcomes wait again}};

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

-- name: fail_in_place
-- Fail attempts in their place among the live jobs, where the database refuses to move them to the finished ones:
-- nothing else is written, so that nothing else can refuse it. They are moved later, one by one (archive).
-- Guard: still running, under this holder, in this attempt.
{{fail where they lie}}
RETURNING id, awaited, (0{{who needs a turn}});

-- name: unmoved
-- Jobs that have ended and could not be moved, the oldest first.
SELECT job.id
FROM fencerow.jobs AS job
WHERE job.state IN ('succeeded', 'failed', 'cancelled')
  AND job.ended_at IS NOT NULL
ORDER BY job.ended_at
LIMIT :limit;

-- name: archive
-- Move jobs that an earlier statement of this transaction brought to a final state to the finished ones. What follows an end
-- is said by the wings. Guard: the state is final.
{{into the ended}}
SELECT {{job columns}}
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('succeeded', 'failed', 'cancelled');
{{what follows an end}}

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
