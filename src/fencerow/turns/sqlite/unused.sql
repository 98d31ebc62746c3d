-- Turns that nobody uses go on.

-- fragment: its turn came
-- When its turn came: with its submit, if nobody gave it one later.
COALESCE(turned.turned_at, turned.submitted_at)

-- name: find_unused_turns
-- Turns at these gates that nobody uses and that are to go on, with the reason: the gate is one of those that have stopped;
-- or a job of another queue could have the turn, and the queue of the job is paused, or nobody has claimed it for so long and
-- no attempt has used it. A turn of an hour to come was given before the clock went back: nobody has claimed it for
-- longer than can be told. What a strict job has started it keeps.
-- Another queue wants the turn, unless none does, or the own one alone: so it is asked in lists that are made once, and not by a walk
-- over who wants what for each turn.
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
                    AND waiting.run_at <= fencerow.now())
),
held (gate, job) AS MATERIALIZED (
    SELECT gate.value, holder.rowid
    FROM json_each(:gates) AS gate
    CROSS JOIN fencerow.jobs AS holder ON holder.exclusive = substr(gate.value, 5)
    WHERE substr(gate.value, 1, 4) = 'key:'
      AND holder.state IN ('queued', 'running')
      AND holder.state = 'queued'
    UNION ALL
    SELECT 'limit:' || named.value, holder.rowid
    FROM fencerow.jobs AS holder, json_each(holder.limits) AS named
    WHERE holder.state IN ('queued', 'running')
      AND holder.state = 'queued'
      AND holder.limits IS NOT NULL
      AND 'limit:' || named.value IN (SELECT value FROM json_each(:gates))  -- a join would read all gates for each job
)
SELECT turned.id, held.gate,
       CASE WHEN held.gate IN (SELECT value FROM json_each(:stopped)) THEN 'breaker'
            WHEN EXISTS (SELECT 1 FROM fencerow.queues AS queue
                         WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL) THEN 'paused'
            ELSE 'unclaimed' END
FROM held
CROSS JOIN fencerow.jobs AS turned ON turned.rowid = held.job
WHERE +turned.state = 'queued'
  AND NOT (turned.strict AND COALESCE(turned.claimed_at >= {{its turn came}}, 0))
  AND (held.gate IN (SELECT value FROM json_each(:stopped))
       OR (EXISTS (SELECT 1 FROM fencerow.queues AS queue
                   WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL)
           OR {{its turn came}} NOT BETWEEN fencerow.now() - CAST(:unclaimed_s * 1000000 AS INTEGER)
                                       AND fencerow.now() + CAST(:unclaimed_s * 1000000 AS INTEGER)
              AND COALESCE(turned.claimed_at < {{its turn came}}, 1))
          AND held.gate IN (SELECT wanted.gate FROM wanted)
          AND (held.gate, turned.queue) NOT IN (SELECT wanted.gate, min(wanted.queue)
                                                FROM wanted
                                                GROUP BY wanted.gate
                                                HAVING min(wanted.queue) = max(wanted.queue)));

-- name: take_turns_back
-- Let jobs that nobody has claimed wait for their turns again, in their places, each at the gate where that was found. Where
-- :taken says for how long, their queues are passed over there.
-- Guard: queued; a claim, a cancel or an expiry that came first makes this change nothing.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'yielded', :actor,
       json_object('why', json_extract(taken.value, '$.why'), 'gate', json_extract(taken.value, '$.gate'))
FROM json_each(:taken) AS taken
JOIN fencerow.jobs AS job ON job.id = json_extract(taken.value, '$.id')
WHERE +job.state = 'queued';
INSERT INTO fencerow.passed_queues (gate, queue, since, until)
SELECT json_extract(taken.value, '$.gate'), job.queue, fencerow.now(),
       fencerow.now() + CAST(max(json_extract(taken.value, '$.passed_s')) * 1000000 AS INTEGER)
FROM json_each(:taken) AS taken
JOIN fencerow.jobs AS job ON job.id = json_extract(taken.value, '$.id')
WHERE +job.state = 'queued' AND json_extract(taken.value, '$.passed_s') IS NOT NULL
GROUP BY json_extract(taken.value, '$.gate'), job.queue
ON CONFLICT (gate, queue) DO UPDATE
SET since = excluded.since, until = excluded.until;
UPDATE fencerow.jobs
SET state = 'waiting', gate = taken.gate
FROM (SELECT json_extract(value, '$.id') AS id, json_extract(value, '$.gate') AS gate FROM json_each(:taken)) AS taken
WHERE fencerow.jobs.id = taken.id
  AND +state = 'queued'
RETURNING id;
INSERT INTO fencerow.gate_arrivals (gate)
SELECT 'key:' || job.exclusive
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids)) AND +job.state = 'waiting' AND +job.exclusive IS NOT NULL
UNION
SELECT 'limit:' || named.value
FROM fencerow.jobs AS job
CROSS JOIN json_each(job.limits) AS named
WHERE job.id IN (SELECT value FROM json_each(:ids)) AND +job.state = 'waiting';
