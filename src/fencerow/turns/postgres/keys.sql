-- Looking at exclusive keys: who has their turns, who waits for one. Nothing here changes anything.

-- fragment: lanes of a gate
-- Each queue of which jobs wait at asked.gate, and each of its priorities: one step of the index for each.
lane_there AS (
    (SELECT waiting.gate, waiting.queue, waiting.priority
     FROM fencerow.jobs AS waiting
     WHERE waiting.state = 'waiting' AND waiting.gate = asked.gate
     ORDER BY waiting.queue, waiting.priority
     LIMIT 1)
    UNION ALL
    SELECT lane_there.gate, next.queue, next.priority
    FROM lane_there
    CROSS JOIN LATERAL (
        SELECT waiting.queue, waiting.priority
        FROM fencerow.jobs AS waiting
        WHERE waiting.state = 'waiting' AND waiting.gate = lane_there.gate
          AND (waiting.queue, waiting.priority) > (lane_there.queue, lane_there.priority)
        ORDER BY waiting.queue, waiting.priority
        LIMIT 1
    ) AS next
)

-- fragment: waits in the lane
-- One of those who wait there.
waiting.state = 'waiting'
AND waiting.gate = lane_there.gate
AND waiting.queue = lane_there.queue
AND waiting.priority = lane_there.priority

-- name: known_keys
-- Keys of which jobs are live, those first where somebody has waited longest. Two skip scans, each of at most :look steps:
-- the lanes (gate, queue and priority) where jobs wait, and the keys of which jobs have turns. No more than 1,000 jobs are counted.
-- The last column says whether a scan ended before it had seen all.
WITH RECURSIVE lane AS (
    (SELECT waiting.gate, waiting.queue, waiting.priority, waiting.run_at
     FROM fencerow.jobs AS waiting
     WHERE waiting.state = 'waiting' AND waiting.gate IS NOT NULL
     ORDER BY waiting.gate, waiting.queue, waiting.priority, waiting.run_at
     LIMIT 1)
    UNION ALL
    SELECT next.gate, next.queue, next.priority, next.run_at
    FROM lane
    CROSS JOIN LATERAL (
        SELECT behind.gate, behind.queue, behind.priority, behind.run_at
        FROM fencerow.jobs AS behind
        WHERE behind.state = 'waiting' AND behind.gate IS NOT NULL
          AND (behind.gate, behind.queue, behind.priority) > (lane.gate, lane.queue, lane.priority)
        ORDER BY behind.gate, behind.queue, behind.priority, behind.run_at
        LIMIT 1
    ) AS next
),
lanes AS MATERIALIZED (SELECT lane.gate, lane.run_at FROM lane LIMIT CAST(:look AS integer)),
turned AS (
    (SELECT holder.exclusive AS key
     FROM fencerow.jobs AS holder
     WHERE holder.state IN ('queued', 'running') AND holder.exclusive IS NOT NULL
     ORDER BY holder.exclusive
     LIMIT 1)
    UNION ALL
    SELECT next.key
    FROM turned
    CROSS JOIN LATERAL (
        SELECT holder.exclusive AS key
        FROM fencerow.jobs AS holder
        WHERE holder.state IN ('queued', 'running') AND holder.exclusive > turned.key
        ORDER BY holder.exclusive
        LIMIT 1
    ) AS next
),
held AS MATERIALIZED (SELECT turned.key FROM turned LIMIT CAST(:look AS integer)),
known AS MATERIALIZED (
    SELECT both_kinds.key, min(both_kinds.since) AS since
    FROM (SELECT substr(lanes.gate, 5) AS key, lanes.run_at AS since FROM lanes WHERE starts_with(lanes.gate, 'key:')
          UNION ALL
          SELECT held.key, NULL FROM held) AS both_kinds
    GROUP BY both_kinds.key
    ORDER BY since NULLS LAST, key
    LIMIT CAST(:limit AS integer)
)
SELECT known.key, holders.running, holders.queued, holders.least, fencerow.us(holders.since), head.at_once, waiters.waiting,
       fencerow.us(known.since), fencerow.us(fencerow.now()),
       (SELECT count(*) FROM lanes) >= CAST(:look AS integer) OR (SELECT count(*) FROM held) >= CAST(:look AS integer)
FROM known
CROSS JOIN LATERAL (SELECT 'key:' || known.key) AS asked (gate)
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE few.state = 'running') AS running,
           count(*) FILTER (WHERE few.state = 'queued') AS queued,
           min(few.at_once) AS least, min(few.since) AS since
    FROM (SELECT holder.state, COALESCE(holder.exclusive_at_once, 1) AS at_once,
                 COALESCE(holder.turned_at, holder.claimed_at, holder.run_at) AS since
          FROM fencerow.jobs AS holder
          WHERE holder.exclusive = known.key AND holder.state IN ('queued', 'running')
          LIMIT 1000) AS few
) AS holders
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting
    FROM (SELECT 1
          FROM fencerow.jobs AS waiting
          WHERE waiting.gate = 'key:' || known.key AND waiting.state = 'waiting'
          LIMIT 1000) AS few
) AS waiters
LEFT JOIN LATERAL (
    WITH RECURSIVE {{lanes of a gate}}
    SELECT first.at_once
    FROM lane_there
    CROSS JOIN LATERAL (
        SELECT waiting.priority, waiting.run_at, waiting.id, COALESCE(waiting.exclusive_at_once, 1) AS at_once
        FROM fencerow.jobs AS waiting
        WHERE {{waits in the lane}}
        ORDER BY waiting.run_at, waiting.id
        LIMIT 1
    ) AS first
    ORDER BY first.priority DESC, first.run_at, first.id
    LIMIT 1
) AS head ON true
ORDER BY known.since NULLS LAST, known.key;

-- name: key_holders
-- The jobs that have the turns of a key, those first that have had theirs longest, and the workers that run them.
SELECT CAST(json_build_object(
    'id', holder.id, 'queue', holder.queue, 'name', holder.name, 'state', holder.state, 'attempt', holder.attempt,
    'strict', holder.strict, 'at_once', COALESCE(holder.exclusive_at_once, 1), 'since_us',
    fencerow.us(COALESCE(holder.turned_at, holder.claimed_at, holder.run_at)), 'run_at_us', fencerow.us(holder.run_at),
    'started_us', fencerow.us(holder.claimed_at), 'deadline_us', fencerow.us(holder.deadline_at),
    'worker_id', worker.id, 'worker', worker.name, 'host', worker.host, 'pid', worker.pid
) AS text)
FROM fencerow.jobs AS holder
LEFT JOIN fencerow.workers AS worker ON worker.id = holder.holder AND holder.state = 'running'
WHERE holder.exclusive = :key AND holder.state IN ('queued', 'running')
ORDER BY COALESCE(holder.turned_at, holder.claimed_at, holder.run_at), holder.id
LIMIT CAST(:limit AS integer);

-- fragment: waiters
-- The first :limit jobs of each lane where jobs wait at the gate.
FROM (VALUES (CAST(:gate AS text))) AS asked (gate)
CROSS JOIN LATERAL (
    WITH RECURSIVE {{lanes of a gate}}
    SELECT each.*
    FROM lane_there
    CROSS JOIN LATERAL (
        SELECT waiting.*
        FROM fencerow.jobs AS waiting
        WHERE {{waits in the lane}}
        ORDER BY waiting.run_at, waiting.id
        LIMIT CAST(:limit AS integer)
    ) AS each
) AS waiting

-- name: gate_waiters
-- The first jobs that wait at a gate, in the order in which they get their turns.
SELECT CAST(json_build_object(
    'id', waiting.id, 'queue', waiting.queue, 'name', waiting.name, 'priority', waiting.priority,
    'attempt', waiting.attempt, 'strict', waiting.strict, 'at_once', COALESCE(waiting.exclusive_at_once, 1),
    'run_at_us', fencerow.us(waiting.run_at), 'submitted_us', fencerow.us(waiting.submitted_at),
    'paused', EXISTS (SELECT 1 FROM fencerow.queues AS queue
                      WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)
) AS text)
{{waiters}}
ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
LIMIT CAST(:limit AS integer);

-- name: count_at_gate
-- How many jobs wait at a gate, and how many of them come before this place: are due, in open queues. Of each lane at most
-- 1,000 are counted.
SELECT (SELECT count(*)
        FROM (SELECT 1
              FROM fencerow.jobs AS waiting
              WHERE waiting.gate = :gate AND waiting.state = 'waiting'
              LIMIT 1000) AS few),
       (SELECT CAST(COALESCE(least(sum(before.count), 1000), 0) AS bigint)
        FROM (VALUES (CAST(:gate AS text))) AS asked (gate)
        CROSS JOIN LATERAL (
            WITH RECURSIVE {{lanes of a gate}}
            SELECT (SELECT count(*)
                    FROM (SELECT 1
                          FROM fencerow.jobs AS waiting
                          WHERE {{waits in the lane}}
                            AND waiting.run_at <= (SELECT fencerow.now())
                            AND (waiting.priority > CAST(:priority AS smallint)
                                 OR (waiting.run_at, waiting.id)
                                    < (fencerow.at(CAST(:run_at_us AS bigint)), CAST(:id AS uuid)))
                          LIMIT 1000) AS few)
            FROM lane_there
            WHERE lane_there.priority >= CAST(:priority AS smallint)
              AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                              WHERE queue.name = lane_there.queue AND queue.paused_at IS NOT NULL)
        ) AS before (count)),
       fencerow.us(fencerow.now());

-- name: count_gates
-- How many gates there are, at how many of the first of them nobody waits or has a turn, how many arrivals nobody has
-- looked at, and for how long the first gate that was to be looked at has waited for that. Each count ends at :limit.
SELECT (SELECT count(*) FROM (SELECT 1 FROM fencerow.gates AS gate LIMIT CAST(:limit AS integer)) AS few),
       (SELECT count(*)
        FROM (SELECT gate.name, gate.next_at FROM fencerow.gates AS gate LIMIT CAST(:limit AS integer)) AS few
        WHERE few.next_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = few.name AND waiting.state = 'waiting')
          AND NOT (starts_with(few.name, 'key:')
                   AND EXISTS (SELECT 1 FROM fencerow.jobs AS holder
                               WHERE holder.exclusive = substr(few.name, 5) AND holder.state IN ('queued', 'running')))),
       (SELECT count(*) FROM (SELECT 1 FROM fencerow.gate_arrivals AS arrival LIMIT CAST(:limit AS integer)) AS few),
       COALESCE((SELECT fencerow.us(fencerow.now()) - fencerow.us(min(gate.next_at)) FROM fencerow.gates AS gate), 0);

-- name: unreadable_jobs
-- Jobs that wait apart, because their rows name no gate.
SELECT CAST(waiting.id AS text)
FROM fencerow.jobs AS waiting
WHERE waiting.gate = :gate AND waiting.state = 'waiting'
ORDER BY waiting.queue, waiting.priority, waiting.run_at, waiting.id
LIMIT CAST(:limit AS integer);
