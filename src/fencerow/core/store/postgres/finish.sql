-- Ending an attempt. Every statement names the holder and the attempt: a worker that lost its lease changes nothing.
-- They are group commits: outcomes come as one JSON document, rows locked by a stranger are skipped and tried again
-- alone, and a missing row means "skipped or lost", which is settled by reading (read_fences), never by assuming.
-- Rows are found by id: a plain `state = 'running'` would let the planner walk jobs_holder, where every job that this
-- worker ever ran leaves a dead entry for as long as anybody holds an old snapshot.

-- fragment: outcomes
-- The document of the outcomes. The planner takes a document for a hundred rows, and thinks of the jobs that they are joined to
-- as one, wherever few lay in the table when it was last analyzed: then it would compare each job with each outcome, five
-- hundred times five hundred. One more list, of one entry, which it takes for a hundred as well, makes it hash.
json_array_elements('[1]') AS once CROSS JOIN json_to_recordset(CAST(:outcomes AS json))

-- fragment: fence of outcome
-- The jobs of the outcomes, each still running, under this holder, in its attempt. Rows that a stranger has locked are left.
job.id = ANY(ARRAY(
        SELECT locked.id
        FROM fencerow.jobs AS locked
        WHERE locked.id = ANY(ARRAY(SELECT outcome.id FROM outcome))
        FOR UPDATE SKIP LOCKED
    ))
  AND job.id = outcome.id
  AND job.state IS NOT DISTINCT FROM 'running'
  AND job.holder = CAST(:holder AS uuid)
  AND job.attempt = outcome.attempt

-- fragment: what follows an end
-- Whatever ended them: the lifetime of their keys begins, and what wings bring follows. All of it reads `ended`, which has
-- the jobs that leave the live ones under the guard of the statement, with all columns as they end.
stamped AS (
    UPDATE fencerow.keys AS owned
    SET expires_at = ended.ended_at + fencerow.seconds(owned.lifetime_s)
    FROM ended
    WHERE ended.key IS NOT NULL  -- spares a look into the keys for each job that has none
      AND owned.scope = ended.scope AND owned.key = ended.key AND owned.job_id = ended.id
    RETURNING owned.job_id
)
{{when jobs have ended}}

-- fragment: told of the ended
-- What the worker is told of each: whether somebody waits for it, and whether it had turns that are free now.
CAST(ended.id AS text), ended.awaited{{whose end is awaited}}, (false{{who needs a turn}})

-- fragment: success
-- Jobs leave the live ones under the fence, and lie among the finished ones, in the period that is open now or among those
-- that are kept row by row. An ephemeral job leaves its id alone, unless somebody waits for its result: then
-- it is kept for a moment. What follows an end (its event, the turns that are free) is said by the wings. They
-- may queue others with it (:alone), which the first row tells.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
opened AS MATERIALIZED (
    SELECT COALESCE(min(period.id), 0) AS place
    FROM fencerow.finished_periods AS period
    WHERE period.state = 'succeeded'
      AND period.starts_at <= (SELECT clock.now FROM clock)
      AND period.ends_at > (SELECT clock.now FROM clock)
      AND period.closed_at IS NULL
),
outcome AS MATERIALIZED (
    SELECT o.* FROM {{outcomes}} AS o (id uuid, attempt bigint, result text)
),
ended AS (
    DELETE FROM fencerow.jobs AS job
    USING outcome
    WHERE {{fence of outcome}}
    RETURNING
        job.id, job.queue, job.name, CAST('succeeded' AS text) AS state, job.priority, job.suspect, job.awaited,
        job.subscribed, job.ephemeral, job.run_at, job.attempt, job.failures, job.crashes, job.snoozes,
        {{job.budgets}}, job.holder, job.claimed_at, job.deadline_at,
        job.cancel_requested_at, job.cancel_requested_by, job.expires_at,
        CASE WHEN job.ephemeral THEN CAST(:awaited_s AS double precision) ELSE job.retention_s END AS retention_s,
        job.scope, job.key, job.submitted_at, job.submitted_by, job.revived_at, (SELECT clock.now FROM clock) AS ended_at,
        CASE WHEN job.ephemeral OR job.retention_s IS NOT NULL THEN 0 ELSE (SELECT opened.place FROM opened) END AS period,
        job.args_bytes, job.args, job.options, job.tags, job.metadata, job.headers, CAST(outcome.result AS json) AS result,
        CAST(NULL AS json) AS error{{job.columns of wings}}
),
spent AS (
    INSERT INTO fencerow.spent_ids (id, attempt, ended_at)
    SELECT ended.id, ended.attempt, ended.ended_at FROM ended WHERE ended.ephemeral
    ON CONFLICT (id) DO UPDATE SET attempt = EXCLUDED.attempt, ended_at = EXCLUDED.ended_at
),
{{what follows an end}}{{when attempts have succeeded}},
kept AS (
    INSERT INTO fencerow.finished_jobs ({{job columns}})
    SELECT {{job columns}}
    FROM ended
    WHERE awaited OR NOT ephemeral

-- name: succeed
-- Store the results of attempts and move their jobs to the finished ones.
-- Guard: still running, under this holder, in this attempt. The period is read in this statement: one that it sees
-- open was not detached before its snapshot, and a detachment waits for it. A job that has ended in this period already
-- (a row that was put back by hand) leaves the live ones, and its first end stands.
{{success}}
    ON CONFLICT DO NOTHING
)
SELECT {{told of the ended}}{{told of successes}}
FROM ended;

-- name: succeed_first
-- The same where none of these jobs is known to have ended before. It spares each row the mark and the confirmation
-- by which ON CONFLICT inserts, an eighth of an end. One that has ended in this period already refuses the whole statement,
-- by its primary key, and nothing is written: then `succeed` is asked. What is told stands in one row, the ids as lists,
-- which costs the server and the worker less than a row for each.
-- Guard: that of `succeed`.
{{success}}
)
SELECT string_agg(CAST(ended.id AS text), ','),
       string_agg(CAST(ended.id AS text), ',') FILTER (WHERE ended.awaited{{whose end is awaited}}),
       bool_or(false{{who needs a turn}}){{told of successes}}
FROM ended;

-- name: fail
-- End attempts whose jobs shall not run again. The rows are moved by archive in the same transaction. What a handler chose
-- itself, and snoozes that are spent, no breaker is told of.
-- Guard: still running, under this holder, in this attempt.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
outcome AS MATERIALIZED (
    SELECT o.* FROM {{outcomes}} AS o (id uuid, attempt bigint, error text)
),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = 'failed',
        failures = job.failures + 1,
        error = CAST(outcome.error AS json),
        ended_at = clock.now
    FROM outcome, clock
    WHERE {{fence of outcome}}
    RETURNING job.id, job.attempt, job.holder, job.claimed_at, job.ended_at, outcome.error, job.queue,
              clock.now AS at, COALESCE(CAST(outcome.error AS json) ->> 'code', '') NOT IN ('failed_by_handler', 'snoozes_exhausted') AS has_failed{{job.columns of the moved}}
){{when attempts have failed}},
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.ended_at, 'failed', CAST(moved.holder AS text),
           json_build_object('claimed_at_us', fencerow.us(moved.claimed_at), 'error', CAST(moved.error AS json))
    FROM moved
)
SELECT id FROM moved;

-- name: requeue
-- Give running jobs back to their queue: after a failure (retried), a snooze (snoozed) or untouched (released).
-- Guard: still running, under this holder, in this attempt, and nobody asked for a cancel.
-- Without delay_s the job keeps its place in its lane; one that lies ahead, because the clock went back since, is now.
-- With a delay it gives up the turns that it needs to run, unless it is strict, and waits for them again.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
outcome AS MATERIALIZED (
    SELECT o.*
    FROM {{outcomes}} AS o (
        id uuid, attempt bigint, kind text, delay_s double precision, failures integer, snoozes integer, detail text
    )
),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = CASE WHEN outcome.delay_s IS NOT NULL AND (false{{whose turn is over}}) THEN 'waiting' ELSE 'queued' END,
        {{where it waits}} = CASE WHEN outcome.delay_s IS NOT NULL AND (false{{whose turn is over}}) THEN {{where it waits first}} END,
        failures = job.failures + outcome.failures,
        snoozes = job.snoozes + outcome.snoozes,
        suspect = job.suspect AND outcome.kind = 'released',
        run_at = COALESCE(clock.now + fencerow.seconds(outcome.delay_s), least(job.run_at, clock.now)),
        holder = NULL,
        deadline_at = NULL
    FROM outcome, clock
    WHERE {{fence of outcome}}
      AND job.cancel_requested_at IS NULL
    RETURNING job.id, job.attempt, job.claimed_at, job.run_at, job.queue, job.priority, outcome.kind, outcome.detail,
              clock.now AS at, job.state, fencerow.lane(job), outcome.kind = 'retried' AS has_failed{{job.columns of the moved}}
){{when attempts have failed}}{{when jobs wait again}},
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.at, moved.kind, CAST(:holder AS text),
           json_build_object('claimed_at_us', fencerow.us(moved.claimed_at), 'run_at_us', fencerow.us(moved.run_at),
                             'detail', CAST(moved.detail AS json))
    FROM moved
)
SELECT id, queue, priority, fencerow.us(run_at), state = 'waiting', lane FROM moved;

-- name: stop
-- End running jobs as cancelled. The rows are moved by archive in the same transaction.
-- Guard: still running, under this holder, in this attempt, and a cancel was asked.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
outcome AS MATERIALIZED (
    SELECT o.* FROM {{outcomes}} AS o (id uuid, attempt bigint, detail text)
),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = 'cancelled',
        error = CAST(outcome.detail AS json),
        ended_at = clock.now
    FROM outcome, clock
    WHERE {{fence of outcome}}
      AND job.cancel_requested_at IS NOT NULL
    RETURNING job.id, job.attempt, job.claimed_at, job.ended_at, job.cancel_requested_by
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.ended_at, 'stopped', CAST(:holder AS text),
           json_build_object('claimed_at_us', fencerow.us(moved.claimed_at), 'asked_by', moved.cancel_requested_by)
    FROM moved
)
SELECT id FROM moved;

-- name: fail_in_place
-- Fail attempts in their place among the live jobs, where the database refuses to move them to the finished ones:
-- nothing else is written, so that nothing else can refuse it. They are moved later, one by one (archive).
-- Guard: still running, under this holder, in this attempt.
WITH outcome AS MATERIALIZED (
    SELECT o.* FROM {{outcomes}} AS o (id uuid, attempt bigint, error text)
)
UPDATE fencerow.jobs AS job
SET state = 'failed',
    failures = job.failures + 1,
    error = CAST(outcome.error AS json),
    ended_at = (SELECT fencerow.now())
FROM outcome
WHERE {{fence of outcome}}
RETURNING CAST(job.id AS text), job.awaited, (false{{who needs a turn}});

-- name: unmoved
-- Jobs that have ended and could not be moved, the oldest first.
SELECT job.id
FROM fencerow.jobs AS job
WHERE job.state IN ('succeeded', 'failed', 'cancelled')
  AND job.ended_at IS NOT NULL
ORDER BY job.ended_at
LIMIT CAST(:limit AS integer);

-- name: archive
-- Move jobs that an earlier statement of this transaction brought to a final state to the finished ones,
-- into the period of their end or to those that are kept row by row. What follows an end is said by the wings.
-- Guard: the state is final. A job that has ended already, in whatever period (a row that was put back by hand), leaves
-- the live ones, and its first end stands: one such row must not end a reaper, an expiry or a worker.
WITH ended AS (
    DELETE FROM fencerow.jobs AS job
    WHERE job.id = ANY(CAST(:ids AS uuid[]))
      AND job.state IN ('succeeded', 'failed', 'cancelled')
    RETURNING job.*
),
{{what follows an end}}{{when other ends are moved}},
kept AS (
INSERT INTO fencerow.finished_jobs ({{job columns}})
SELECT
    id, queue, name, state, priority, suspect, awaited, subscribed, ephemeral, run_at, attempt, failures, crashes,
    snoozes, {{budgets}}, holder, claimed_at, deadline_at,
    cancel_requested_at, cancel_requested_by, expires_at, retention_s, scope, key, submitted_at, submitted_by, revived_at, ended_at,
    COALESCE((SELECT min(period.id)
              FROM fencerow.finished_periods AS period
              WHERE period.state = ended.state
                AND period.starts_at <= ended.ended_at
                AND period.ends_at > ended.ended_at
                AND period.closed_at IS NULL
                AND ended.retention_s IS NULL), 0),
    args_bytes, args, options, tags, metadata, headers, result, error{{columns of wings}}
FROM ended
WHERE NOT EXISTS (SELECT 1 FROM fencerow.finished_jobs AS known WHERE known.id = ended.id)
ON CONFLICT DO NOTHING
)
SELECT {{told of the ended}}
FROM ended;

-- name: read_fences
-- What became of these jobs: state, holder and attempt over live and finished together, and of ephemeral ones
-- that succeeded what is left of them.
-- A lost reply is resolved by this, never by a blind repeat.
SELECT job.id, job.state, job.holder, job.attempt, job.cancel_requested_at IS NOT NULL, false
FROM fencerow.all_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
UNION ALL
SELECT spent.id, 'succeeded', NULL, spent.attempt, false, true
FROM fencerow.spent_ids AS spent
WHERE spent.id = ANY(CAST(:ids AS uuid[]));
