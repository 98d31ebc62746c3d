-- Turns that nobody uses go on.

-- fragment: its turn came
-- When its turn came: with its submit, if nobody gave it one later.
COALESCE(turned.turned_at, turned.submitted_at)

-- name: find_unused_turns
-- Turns at these gates that nobody uses and that are to go on, with the reason: the gate is one of those that have stopped;
-- or a job of another queue could have the turn, and the queue of the job is paused, or nobody has claimed it for so long and
-- no attempt has used it. A turn of an hour to come was given before the clock went back: nobody has claimed it for
-- longer than can be told. What a strict job has started it keeps. The jobs are locked; those that somebody locks are left.
WITH RECURSIVE {{lanes at gates}},
wanted AS MATERIALIZED (
    SELECT lane.gate, lane.queue
    FROM lane
    WHERE {{is open}}
      AND EXISTS (SELECT 1
                  FROM fencerow.jobs AS waiting
                  WHERE waiting.gate = lane.gate
                    AND waiting.queue = lane.queue
                    AND waiting.priority = lane.priority
                    AND waiting.state = 'waiting'
                    AND waiting.run_at <= (SELECT fencerow.now()))
),
held AS MATERIALIZED (
    SELECT gate.name AS gate, holder.id
    FROM unnest(CAST(:gates AS text[])) AS gate (name)
    JOIN fencerow.jobs AS holder ON holder.exclusive = substr(gate.name, 5) AND holder.state = 'queued'
    WHERE starts_with(gate.name, 'key:')
    UNION ALL
    SELECT gate.name, holder.id
    FROM unnest(CAST(:gates AS text[])) AS gate (name)
    CROSS JOIN LATERAL (SELECT substr(gate.name, 7) AS name) AS asked
    JOIN fencerow.jobs AS holder ON {{names this limit}} AND holder.state = 'queued'
    WHERE starts_with(gate.name, 'limit:')
)
SELECT turned.id, held.gate,
       CASE WHEN held.gate = ANY(CAST(:stopped AS text[])) THEN 'breaker'
            WHEN EXISTS (SELECT 1 FROM fencerow.queues AS queue
                         WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL) THEN 'paused'
            ELSE 'unclaimed' END
FROM held
JOIN fencerow.jobs AS turned ON turned.id = held.id
WHERE turned.state IS NOT DISTINCT FROM 'queued'
  AND NOT (turned.strict AND COALESCE(turned.claimed_at >= {{its turn came}}, false))
  AND (held.gate = ANY(CAST(:stopped AS text[]))
       OR (EXISTS (SELECT 1 FROM fencerow.queues AS queue
                   WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL)
           OR {{its turn came}}
              NOT BETWEEN (SELECT fencerow.now()) - fencerow.seconds(CAST(:unclaimed_s AS double precision))
                      AND (SELECT fencerow.now()) + fencerow.seconds(CAST(:unclaimed_s AS double precision))
              AND COALESCE(turned.claimed_at < {{its turn came}}, true))
          AND EXISTS (SELECT 1 FROM wanted WHERE wanted.gate = held.gate AND wanted.queue <> turned.queue))
FOR UPDATE OF turned SKIP LOCKED;

-- name: take_turns_back
-- Let jobs that nobody has claimed wait for their turns again, in their places, each at the gate where that was found. Where
-- :taken says for how long, their queues are passed over there.
-- Guard: queued; a claim, a cancel or an expiry that came first makes this change nothing.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
taken AS MATERIALIZED (
    SELECT each.id, each.gate, each.why, each.passed_s
    FROM json_to_recordset(CAST(:taken AS json)) AS each (id uuid, gate text, why text, passed_s double precision)
),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = 'waiting',
        gate = taken.gate
    FROM taken
    WHERE job.id = ANY(CAST(:ids AS uuid[]))
      AND job.id = taken.id
      AND job.state IS NOT DISTINCT FROM 'queued'
    RETURNING job.id, job.attempt, job.state, job.exclusive, job.limits, job.gate, job.queue, taken.why, taken.passed_s
),
passed AS (
    INSERT INTO fencerow.passed_queues (gate, queue, since, until)
    SELECT moved.gate, moved.queue, clock.now, clock.now + fencerow.seconds(max(moved.passed_s))
    FROM moved CROSS JOIN clock
    WHERE moved.passed_s IS NOT NULL
    GROUP BY moved.gate, moved.queue, clock.now
    ORDER BY moved.gate COLLATE "C", moved.queue COLLATE "C"
    ON CONFLICT (gate, queue) DO UPDATE
    SET since = EXCLUDED.since, until = EXCLUDED.until
),
left_gates AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    {{gates of the moved}}
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, clock.now, 'yielded', CAST(:actor AS text),
           json_build_object('why', moved.why, 'gate', moved.gate)
    FROM moved CROSS JOIN clock
)
SELECT CAST(id AS text) FROM moved;
