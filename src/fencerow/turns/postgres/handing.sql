-- Turns: of a key no more jobs run at once than it allows. A job that needs a turn waits at a gate, in no lane, so
-- that a claim never meets it. A turn is not stored anywhere: the jobs of a key that are queued or running have its
-- turns. So whatever ends a job has given its turn back, and nobody can forget to.
-- Only a hand-over makes a job that waits at a gate queued. It locks the rows of its gates first, counts in a later
-- statement, and gives what is left.
-- A job with limits needs a turn at several gates. It waits at one of them that is full, and gets all its turns at once.
-- Jobs that are named are found by their ids: IS NOT DISTINCT FROM keeps the planner from walking all that wait for them, which it does
-- when it believes that few do.

-- name: lock_gates
-- Lock the gates until the transaction ends, and make the rows of those that have none: who gives turns there waits.
-- A statement of its own, before the one that counts: the snapshot of this one may be older than the turns that were
-- given by whoever held a lock. One by one in sorted order, whether made or there, so that nobody waits in a ring.
INSERT INTO fencerow.gates AS known (name)
SELECT wanted.name
FROM unnest(CAST(:gates AS text[])) AS wanted (name)
ORDER BY wanted.name COLLATE "C"
ON CONFLICT (name) DO UPDATE
SET name = EXCLUDED.name
WHERE false;

-- name: try_gates
-- Lock those of these gates that have rows and that nobody has locked. It waits for nobody, so it may come in any order.
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.name = ANY(CAST(:gates AS text[]))
FOR UPDATE SKIP LOCKED;

-- fragment: lanes at gates
-- Where jobs wait at these gates: each queue there and each of its priorities, one step of the index for each. So a queue
-- that is paused or passed over costs a step, however many of its jobs wait, and so do those that are not due.
-- The condition on the name is always true. The server takes it to be rare, and so the steps to be few: it expects a hundred
-- for each gate otherwise, and compiles the statement (JIT) for a second before it runs for milliseconds.
lane (gate, queue, priority) AS (
    SELECT gate.name, first.queue, first.priority
    FROM unnest(CAST(:gates AS text[])) AS gate (name)
    CROSS JOIN LATERAL (
        SELECT waiting.queue, waiting.priority
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = gate.name AND waiting.state = 'waiting'
        ORDER BY waiting.queue, waiting.priority
        LIMIT 1
    ) AS first
    WHERE gate.name || '' = gate.name
    UNION ALL
    SELECT lane.gate, next.queue, next.priority
    FROM lane
    CROSS JOIN LATERAL (
        SELECT waiting.queue, waiting.priority
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = lane.gate AND waiting.state = 'waiting'
          AND (waiting.queue, waiting.priority) > (lane.queue, lane.priority)
        ORDER BY waiting.queue, waiting.priority
        LIMIT 1
    ) AS next
)

-- fragment: is passed over
-- Nobody claimed the turn of a job of this queue at this gate: others go first for a while. Not so if that was noted in an
-- hour to come, before the clock went back.
EXISTS (SELECT 1
        FROM fencerow.passed_queues AS passed
        WHERE passed.gate = lane.gate AND passed.queue = lane.queue
          AND passed.since <= (SELECT fencerow.now()) AND passed.until > (SELECT fencerow.now()))

-- fragment: is open
-- Nobody has paused its queue, and it is not passed over.
NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name = lane.queue AND queue.paused_at IS NOT NULL)
AND NOT {{is passed over}}

-- fragment: may go
-- It waits in this lane, is due, and has not expired. The instant stands first by itself: it bounds the walk over the index. The rest
-- stands in a CASE: the server takes it to be rare, and would read and sort all that wait there to find one.
waiting.gate = lane.gate
AND waiting.queue = lane.queue
AND waiting.priority = lane.priority
AND waiting.state = 'waiting'
AND waiting.run_at <= (SELECT greatest(fencerow.now(), least(fencerow.at(CAST(:due_us AS bigint)),
                                                             fencerow.now() + INTERVAL '1 day')))
AND CASE WHEN {{due}} AND COALESCE(waiting.expires_at > (SELECT fencerow.now()), true) THEN true END IS NOT NULL

-- name: gates_beside
-- Which other gates those need who wait at these and come first: all are locked in one sorted order, or in none.
WITH RECURSIVE {{lanes at gates}}
SELECT DISTINCT next.exclusive, CAST(to_json(next.limits) AS text)
FROM lane
CROSS JOIN LATERAL (
    SELECT waiting.exclusive, waiting.limits
    FROM fencerow.jobs AS waiting
    WHERE {{may go}}
    ORDER BY waiting.run_at, waiting.id
    LIMIT CAST(:limit AS integer)
) AS next
WHERE {{is open}}
  AND next.limits IS NOT NULL;

-- name: gates_left
-- Those of these gates where somebody may go who has got no turn: at those of keys where one is free, and at those of limits,
-- whose rules are not read here.
WITH RECURSIVE {{lanes at gates}}
SELECT DISTINCT lane.gate
FROM lane
CROSS JOIN LATERAL (
    SELECT COALESCE(waiting.exclusive_at_once, 1) AS at_once
    FROM fencerow.jobs AS waiting
    WHERE {{may go}}
    ORDER BY waiting.run_at, waiting.id
    LIMIT 1
) AS first
WHERE {{is open}}
  AND (NOT starts_with(lane.gate, 'key:')
       OR (SELECT count(*)
           FROM fencerow.jobs AS holder
           WHERE holder.exclusive = substr(lane.gate, 5) AND holder.state IN ('queued', 'running')) < first.at_once);

-- fragment: names this limit
-- It names asked.name: an index has the first limit of each job, one the second, and one those behind it.
(holder.limits[1] = asked.name
 OR holder.limits[2] = asked.name
 OR holder.limits[3] IS NOT NULL AND holder.limits[3:] @> ARRAY[asked.name])

-- fragment: turn of a limit
-- Each of those that have a turn under a limit whose turns are counted, and whether it has not started with it. Who names it first,
-- second or later is counted apart: together they would be found by their places, and no walk could clear an index of its dead.
SELECT NULL, holder.state = 'queued' AND COALESCE(holder.claimed_at < holder.turned_at, true)
FROM fencerow.jobs AS holder
WHERE gate.name = ANY(CAST(:counted AS text[])) AND holder.state IN ('queued', 'running')

-- name: count_turns
-- Of each of these gates when it is to be looked at next, how many jobs have a turn there, how many of these nobody has started
-- with it (told of limits), and the least that one of a key allows. Under limits only those of :counted
-- are counted. Then for which job a turn is kept there, and until when: none is kept for another until as much time has passed.
-- Last how many wait there, two at most.
SELECT gate.name, fencerow.us(gate.next_at), held.taken, held.unclaimed, held.least,
       CASE WHEN gate.kept_until > (SELECT fencerow.now()) THEN CAST(gate.kept_for AS text) END,
       CASE WHEN gate.kept_until > (SELECT fencerow.now()) - fencerow.seconds(CAST(:kept_s AS double precision))
            THEN fencerow.us(gate.kept_until) END,
       (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = gate.name AND waiting.state = 'waiting' LIMIT 2) AS few)
FROM fencerow.gates AS gate
CROSS JOIN LATERAL (
    SELECT count(*) AS taken, count(*) FILTER (WHERE either.unclaimed) AS unclaimed, min(either.at_once) AS least
    FROM (SELECT COALESCE(holder.exclusive_at_once, 1) AS at_once, false AS unclaimed
          FROM fencerow.jobs AS holder
          WHERE starts_with(gate.name, 'key:')
            AND holder.exclusive = substr(gate.name, 5)
            AND holder.state IN ('queued', 'running')
          UNION ALL
          {{turn of a limit}} AND holder.limits[1] = substr(gate.name, 7)
          UNION ALL
          {{turn of a limit}} AND holder.limits[2] = substr(gate.name, 7)
          UNION ALL
          {{turn of a limit}} AND holder.limits[3] IS NOT NULL AND holder.limits[3:] @> ARRAY[substr(gate.name, 7)]
         ) AS either
) AS held
WHERE gate.name = ANY(CAST(:gates AS text[]));

-- name: find_turns
-- The first :wanted jobs of each lane at these gates that may go, locked. Those of paused queues, of queues where nobody
-- claims, and those that somebody locks are passed over: they block nobody.
-- The limit stands in a LATERAL of its own: as an array of a correlated subquery it gave a gate's turns many times.
WITH RECURSIVE {{lanes at gates}}
SELECT lane.gate, CAST(next.id AS text), next.at_once, next.exclusive, CAST(to_json(next.limits) AS text), lane.priority,
       fencerow.us(next.run_at),
       next.run_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:aged_s AS double precision))
FROM lane
CROSS JOIN LATERAL (
    SELECT waiting.id, COALESCE(waiting.exclusive_at_once, 1) AS at_once, waiting.run_at, waiting.exclusive, waiting.limits
    FROM fencerow.jobs AS waiting
    WHERE {{may go}}
    ORDER BY waiting.run_at, waiting.id
    LIMIT CAST(:wanted AS integer)
    FOR UPDATE SKIP LOCKED
) AS next
WHERE {{is open}};

-- name: find_kept
-- Those of these jobs, for which turns are kept, that may go; locked. For the others nothing is kept any more, or not now.
SELECT waiting.gate, CAST(waiting.id AS text), COALESCE(waiting.exclusive_at_once, 1), waiting.exclusive,
       CAST(to_json(waiting.limits) AS text), waiting.priority, fencerow.us(waiting.run_at), true
FROM fencerow.jobs AS waiting
WHERE waiting.id = ANY(CAST(:ids AS uuid[]))
  AND waiting.state IS NOT DISTINCT FROM 'waiting'
  AND waiting.gate IS NOT NULL
  AND {{due}}
  AND COALESCE(waiting.expires_at > (SELECT fencerow.now()), true)
  AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)
FOR UPDATE OF waiting SKIP LOCKED;

-- name: keep_turns
-- Keep the next turn at these gates for a job, for a while. Their rows are locked by this transaction. They are looked at
-- again: who took an arrival meanwhile has not seen that a turn is kept.
WITH told AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT kept.gate
    FROM unnest(CAST(:gates AS text[])) AS kept (gate)
)
UPDATE fencerow.gates AS gate
SET kept_for = CAST(:id AS uuid),
    kept_until = (SELECT fencerow.now()) + fencerow.seconds(CAST(:kept_s AS double precision))
WHERE gate.name = ANY(CAST(:gates AS text[]));

-- name: keep_no_turns
-- Keep none at these gates: the job for which they were kept has its turns. Their rows are locked by this transaction.
UPDATE fencerow.gates AS gate
SET kept_for = NULL, kept_until = NULL
WHERE gate.name = ANY(CAST(:gates AS text[]));

-- name: give_turns
-- Queue jobs whose turn it is. They keep their place in their lane; whoever calls lowers the marks. They are due now for
-- everybody, whoever knows what the clock had reached: nobody may hold a turn that no worker would take.
-- Guard: waiting at a gate. The rows of all its gates are locked and counted by now. The state is said so that no partial index
-- serves it, as in a claim: of a table that nobody has analyzed the planner walks all who wait for each of the ids.
UPDATE fencerow.jobs AS job
SET state = 'queued',
    gate = NULL,
    run_at = least(job.run_at, fencerow.now()),
    turned_at = (SELECT fencerow.now())
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state IS NOT DISTINCT FROM 'waiting'
  AND job.gate IS NOT NULL
RETURNING CAST(job.id AS text), job.queue, job.priority, fencerow.us(job.run_at), false, fencerow.lane(job);

-- fragment: line of those alike
-- The first :wanted at each of these gates of limits that may go, locked, each with its place there, and whether nobody up to it
-- needs another gate too.
first AS MATERIALIZED (
    SELECT lane.gate, lane.queue, lane.priority, next.id, next.run_at, next.alone
    FROM lane
    CROSS JOIN LATERAL (
        SELECT waiting.id, waiting.run_at,
               waiting.exclusive IS NULL AND waiting.limits = ARRAY[substr(lane.gate, 7)] AS alone
        FROM fencerow.jobs AS waiting
        WHERE {{may go}}
        ORDER BY waiting.run_at, waiting.id
        LIMIT CAST(:wanted AS integer)
        FOR UPDATE SKIP LOCKED
    ) AS next
    WHERE {{is open}}
),
line AS MATERIALIZED (
    SELECT first.id, first.gate, first.queue, first.priority, first.run_at,
           row_number() OVER earlier AS place, bool_and(COALESCE(first.alone, false)) OVER earlier AS goes
    FROM first
    WINDOW earlier AS (PARTITION BY first.gate ORDER BY first.priority DESC, first.run_at, first.id ROWS UNBOUNDED PRECEDING)
)

-- fragment: workers that live
-- How many workers live, by their leases, which an index has.
(SELECT count(*) FROM fencerow.workers AS worker WHERE worker.state = 'alive' AND worker.lease_until > (SELECT fencerow.now()))

-- name: find_alike
-- Those to whom `give_alike` would give turns, locked, in no order: the gate of each, its queue, how many workers live, its priority and when it was due, and whether
-- somebody was found who needs more. For a worker that claims them itself.
WITH RECURSIVE {{lanes at gates}},
{{line of those alike}}
SELECT CAST(line.id AS text), line.gate, line.queue, {{workers that live}}, line.priority, fencerow.us(line.run_at),
       EXISTS (SELECT 1 FROM line WHERE NOT line.goes)
FROM line
WHERE line.goes AND line.place <= CAST(:wanted AS integer);

-- name: give_alike
-- Give turns to the first :wanted at each of these gates of limits that may go, in the order of their places, up to the first who
-- needs another gate too. `find_turns` and `give_turns` in one, for those that most gates of limits have: nothing is to be chosen
-- among jobs that need one gate each. Tells the gate of each, and whether somebody was found who needs more.
-- Guard: that of `give_turns`; the rows of the gates are locked and counted by now.
WITH RECURSIVE {{lanes at gates}},
{{line of those alike}}
UPDATE fencerow.jobs AS job
SET state = 'queued',
    gate = NULL,
    run_at = least(job.run_at, fencerow.now()),
    turned_at = (SELECT fencerow.now())
WHERE job.id = ANY(ARRAY(SELECT line.id FROM line WHERE line.goes AND line.place <= CAST(:wanted AS integer)))
  AND job.state IS NOT DISTINCT FROM 'waiting'
  AND job.gate IS NOT NULL
RETURNING CAST(job.id AS text), job.queue, job.priority, fencerow.us(job.run_at), false, fencerow.lane(job), 'limit:' || job.limits[1],
          EXISTS (SELECT 1 FROM line WHERE NOT line.goes);

-- name: send_on
-- Let jobs wait at another of their gates, which is full. They come to those of keys, and say so: who took an arrival there
-- meanwhile has not seen them. Guard: waiting at a gate. The rows of both are locked.
WITH sent AS MATERIALIZED (
    SELECT each.id, each.gate FROM json_to_recordset(CAST(:sent AS json)) AS each (id uuid, gate text)
),
come AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT DISTINCT sent.gate FROM sent WHERE starts_with(sent.gate, 'key:')
)
UPDATE fencerow.jobs AS job
SET gate = sent.gate
FROM sent
WHERE job.id = sent.id
  AND job.state IS NOT DISTINCT FROM 'waiting'
  AND job.gate IS NOT NULL;

-- name: note_gates
-- Write when each gate is to be looked at next. Where a turn is free (:gates), that is when the next job that waits there may
-- go. Who may go now and got no turn was locked by somebody, who may leave it as it was and tell nobody: it is
-- looked at again soon. Where no turn is free, it is when time makes room for those who wait; and if only an end does, its
-- arrival will tell. Only what is new is written.
WITH RECURSIVE {{lanes at gates}},
coming AS MATERIALIZED (
    SELECT lane.gate,
           min(greatest(CASE WHEN first.run_at <= (SELECT fencerow.now())
                             THEN (SELECT fencerow.now()) + fencerow.seconds(CAST(:soon_s AS double precision))
                             ELSE first.run_at END, passed.until)) AS at
    FROM lane
    CROSS JOIN LATERAL (
        SELECT waiting.run_at
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = lane.gate
          AND waiting.queue = lane.queue
          AND waiting.priority = lane.priority
          AND waiting.state = 'waiting'
        ORDER BY waiting.run_at
        LIMIT 1
    ) AS first
    LEFT JOIN fencerow.passed_queues AS passed
           ON passed.gate = lane.gate AND passed.queue = lane.queue AND {{is passed over}}
    WHERE NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name = lane.queue AND queue.paused_at IS NOT NULL)
    GROUP BY lane.gate
),
next AS (
    SELECT gate.name, gate.next_at AS known,
           CASE WHEN gate.name = ANY(CAST(:gates AS text[])) THEN coming.at
                WHEN EXISTS (SELECT 1 FROM fencerow.jobs AS waiting
                             WHERE waiting.gate = gate.name AND waiting.state = 'waiting')
                THEN fencerow.at(noted.again_us) END AS at
    FROM json_to_recordset(CAST(:noted AS json)) AS noted (gate text, again_us bigint)
    JOIN fencerow.gates AS gate ON gate.name = noted.gate
    LEFT JOIN coming ON coming.gate = gate.name
)
UPDATE fencerow.gates AS gate
SET next_at = next.at
FROM next
WHERE gate.name = next.name
  AND next.known IS DISTINCT FROM next.at;
