-- Looking at exclusive keys: who has their turns, who waits for one. Nothing here changes anything.

-- name: known_keys
-- Keys of which jobs are live, those first where somebody has waited longest. Two skip scans, each of at most :look steps:
-- the lanes (gate, queue and priority) where jobs wait, and the keys of which jobs have turns. No more than 1,000 jobs are counted.
-- The last column says whether a scan ended before it had seen all.
WITH RECURSIVE lane (gate, queue, priority) AS (
    SELECT first.gate, first.queue, first.priority
    FROM fencerow.jobs AS first
    WHERE first.rowid = (
        SELECT waiting.rowid
        FROM fencerow.jobs AS waiting
        WHERE waiting.state = 'waiting' AND waiting.gate IS NOT NULL
        ORDER BY waiting.gate, waiting.queue, waiting.priority
        LIMIT 1
    )
    UNION ALL
    SELECT behind.gate, behind.queue, behind.priority
    FROM lane
    CROSS JOIN fencerow.jobs AS behind ON behind.rowid = COALESCE(
        {{next lane at the gate}},
        (SELECT waiting.rowid
         FROM fencerow.jobs AS waiting
         WHERE waiting.state = 'waiting' AND waiting.gate > lane.gate
         ORDER BY waiting.gate, waiting.queue, waiting.priority
         LIMIT 1)
    )
    LIMIT :look
),
lanes AS MATERIALIZED (
    SELECT lane.gate,
           (SELECT min(first.run_at)
            FROM fencerow.jobs AS first
            WHERE first.gate = lane.gate AND first.queue = lane.queue AND first.priority = lane.priority
              AND first.state = 'waiting') AS run_at
    FROM lane
),
turned (key) AS (
    SELECT (SELECT min(holder.exclusive) FROM fencerow.jobs AS holder
            WHERE holder.state IN ('queued', 'running') AND holder.exclusive IS NOT NULL)
    UNION ALL
    SELECT (SELECT min(holder.exclusive) FROM fencerow.jobs AS holder
            WHERE holder.state IN ('queued', 'running') AND holder.exclusive > turned.key)
    FROM turned
    WHERE turned.key IS NOT NULL
    LIMIT :look
),
held AS MATERIALIZED (SELECT turned.key FROM turned),
known AS MATERIALIZED (
    SELECT both_kinds.key, min(both_kinds.since) AS since
    FROM (SELECT substr(lanes.gate, 5) AS key, lanes.run_at AS since FROM lanes WHERE substr(lanes.gate, 1, 4) = 'key:'
          UNION ALL
          SELECT held.key, NULL FROM held WHERE held.key IS NOT NULL) AS both_kinds
    GROUP BY both_kinds.key
    ORDER BY since IS NULL, since, key
    LIMIT :limit
)
SELECT known.key,
       (SELECT count(*) FROM fencerow.jobs AS holder
        WHERE holder.exclusive = known.key AND holder.state IN ('queued', 'running') AND holder.state = 'running'),
       (SELECT count(*) FROM fencerow.jobs AS holder
        WHERE holder.exclusive = known.key AND holder.state IN ('queued', 'running') AND holder.state = 'queued'),
       (SELECT min(COALESCE(holder.exclusive_at_once, 1)) FROM fencerow.jobs AS holder
        WHERE holder.exclusive = known.key AND holder.state IN ('queued', 'running')),
       (SELECT min(COALESCE(holder.turned_at, holder.claimed_at, holder.run_at)) FROM fencerow.jobs AS holder
        WHERE holder.exclusive = known.key AND holder.state IN ('queued', 'running')),
       (WITH RECURSIVE lane (gate, queue, priority) AS (
            SELECT first.gate, first.queue, first.priority
            FROM fencerow.jobs AS first
            WHERE first.rowid = (
                SELECT waiting.rowid
                FROM fencerow.jobs AS waiting
                WHERE waiting.gate = 'key:' || known.key AND waiting.state = 'waiting'
                ORDER BY waiting.queue, waiting.priority
                LIMIT 1
            )
            UNION ALL
            SELECT behind.gate, behind.queue, behind.priority
            FROM lane
            CROSS JOIN fencerow.jobs AS behind ON behind.rowid = COALESCE(
                {{next lane at the gate}}
            )
        )
        SELECT COALESCE(first.exclusive_at_once, 1)
        FROM lane
        CROSS JOIN fencerow.jobs AS first ON first.rowid = (
            SELECT waiting.rowid
            FROM fencerow.jobs AS waiting
            WHERE waiting.gate = lane.gate AND waiting.queue = lane.queue AND waiting.priority = lane.priority
              AND waiting.state = 'waiting'
            ORDER BY waiting.run_at, waiting.id
            LIMIT 1
        )
        ORDER BY lane.priority DESC, first.run_at, first.id
        LIMIT 1),
       (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.jobs AS waiting
              WHERE waiting.gate = 'key:' || known.key AND waiting.state = 'waiting'
              LIMIT 1000)),
       known.since, fencerow.now(),
       (SELECT count(*) FROM lane) >= :look OR (SELECT count(*) FROM held) >= :look
FROM known
ORDER BY known.since IS NULL, known.since, known.key;

-- name: key_holders
-- The jobs that have the turns of a key, those first that have had theirs longest, and the workers that run them.
SELECT json_object(
    'id', holder.id, 'queue', holder.queue, 'name', holder.name, 'state', holder.state, 'attempt', holder.attempt,
    'strict', json(CASE WHEN holder.strict THEN 'true' ELSE 'false' END), 'at_once', COALESCE(holder.exclusive_at_once, 1),
    'since_us', COALESCE(holder.turned_at, holder.claimed_at, holder.run_at), 'run_at_us', holder.run_at,
    'started_us', holder.claimed_at, 'deadline_us', holder.deadline_at,
    'worker_id', worker.id, 'worker', worker.name, 'host', worker.host, 'pid', worker.pid
)
FROM fencerow.jobs AS holder
LEFT JOIN fencerow.workers AS worker ON worker.id = holder.holder AND holder.state = 'running'
WHERE holder.exclusive = :key AND holder.state IN ('queued', 'running')
ORDER BY COALESCE(holder.turned_at, holder.claimed_at, holder.run_at), holder.id
LIMIT :limit;

-- name: gate_waiters
-- The first jobs that wait at a gate, in the order in which they get their turns.
SELECT json_object(
    'id', waiting.id, 'queue', waiting.queue, 'name', waiting.name, 'priority', waiting.priority,
    'attempt', waiting.attempt, 'strict', json(CASE WHEN waiting.strict THEN 'true' ELSE 'false' END),
    'at_once', COALESCE(waiting.exclusive_at_once, 1), 'run_at_us', waiting.run_at, 'submitted_us', waiting.submitted_at,
    'paused', json(CASE WHEN EXISTS (SELECT 1 FROM fencerow.queues AS queue
                                     WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)
                   THEN 'true' ELSE 'false' END)
)
FROM fencerow.jobs AS waiting
WHERE waiting.gate = :gate AND waiting.state = 'waiting'
ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
LIMIT :limit;

-- name: count_at_gate
-- How many jobs wait at a gate, and how many of them come before this place: are due, in open queues. Of each at most
-- 1,000 are looked at.
SELECT (SELECT count(*)
        FROM (SELECT 1
              FROM fencerow.jobs AS waiting
              WHERE waiting.gate = :gate AND waiting.state = 'waiting'
              LIMIT 1000)),
       (SELECT count(*)
        FROM (SELECT waiting.queue
              FROM fencerow.jobs AS waiting
              WHERE waiting.gate = :gate AND waiting.state = 'waiting'
                AND waiting.run_at <= fencerow.now()
                AND (waiting.priority > :priority
                     OR waiting.priority = :priority AND (waiting.run_at, waiting.id) < (:run_at_us, :id))
              ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
              LIMIT 1000) AS before
        WHERE NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                          WHERE queue.name = before.queue AND queue.paused_at IS NOT NULL)),
       fencerow.now();

-- name: count_gates
-- How many gates there are, at how many of the first of them nobody waits or has a turn, how many arrivals nobody has
-- looked at, and for how long the first gate that was to be looked at has waited for that. Each count ends at :limit.
SELECT (SELECT count(*) FROM (SELECT 1 FROM fencerow.gates AS gate LIMIT :limit) AS few),
       (SELECT count(*)
        FROM (SELECT gate.name, gate.next_at FROM fencerow.gates AS gate LIMIT :limit) AS few
        WHERE few.next_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = few.name AND waiting.state = 'waiting')
          AND NOT (substr(few.name, 1, 4) = 'key:'
                   AND EXISTS (SELECT 1 FROM fencerow.jobs AS holder
                               WHERE holder.exclusive = substr(few.name, 5) AND holder.state IN ('queued', 'running')))),
       (SELECT count(*) FROM (SELECT 1 FROM fencerow.gate_arrivals AS arrival LIMIT :limit) AS few),
       COALESCE((SELECT fencerow.now() - min(gate.next_at) FROM fencerow.gates AS gate), 0);

-- name: unreadable_jobs
-- Jobs that wait apart, because their rows name no gate.
SELECT waiting.id
FROM fencerow.jobs AS waiting
WHERE waiting.gate = :gate AND waiting.state = 'waiting'
ORDER BY waiting.queue, waiting.priority, waiting.run_at, waiting.id
LIMIT :limit;
