-- Turns: of a key no more jobs run at once than it allows. A job that needs a turn waits at a gate, in no lane, so
-- that a claim never meets it. A turn is not stored anywhere: the jobs of a key that are queued or running have its
-- turns. So whatever ends a job has given its turn back, and nobody can forget to.
-- Only a hand-over makes a job that waits at a gate queued. It counts and gives under the file's one write lock.
-- A job with limits needs a turn at several gates. It waits at one of them that is full, and gets all its turns at once.
-- The + before a state or a gate keeps the planner off an index of all that wait, where jobs are named by their ids: it would walk
-- them all where statistics of a file that was nearly empty call that short.

-- name: lock_gates
-- Make the rows of gates that have none; the file's one write lock is held already. Guard: the primary key.
INSERT INTO fencerow.gates (name)
SELECT wanted.value
FROM json_each(:gates) AS wanted
WHERE true
ON CONFLICT (name) DO NOTHING;

-- name: try_gates
-- Those of these gates that have rows; the file's one write lock is held already.
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.name IN (SELECT value FROM json_each(:gates));

-- fragment: next lane at the gate
-- The first job of the next priority of this lane's queue, then that of the next queue, as two that may be missing. Of a comparison of
-- both columns at once SQLite takes the queue alone to the index, and walks over all that wait in it.
(SELECT waiting.rowid
 FROM fencerow.jobs AS waiting
 WHERE waiting.gate = lane.gate AND waiting.state = 'waiting'
   AND waiting.queue = lane.queue AND waiting.priority > lane.priority
 ORDER BY waiting.priority
 LIMIT 1),
(SELECT waiting.rowid
 FROM fencerow.jobs AS waiting
 WHERE waiting.gate = lane.gate AND waiting.state = 'waiting' AND waiting.queue > lane.queue
 ORDER BY waiting.queue, waiting.priority
 LIMIT 1)

-- fragment: lanes at gates
-- Where jobs wait at these gates: each queue there and each of its priorities, one step of the index for each. So a queue
-- that is paused or passed over costs a step, however many of its jobs wait, and so do those that are not due.
-- CROSS JOIN, here and where lanes are read: first the lane, then its jobs. Statistics of a file that was nearly empty tell the planner
-- that a walk over all jobs for each lane is as good.
lane (gate, queue, priority) AS (
    SELECT gate.value, first.queue, first.priority
    FROM json_each(:gates) AS gate
    CROSS JOIN fencerow.jobs AS first ON first.rowid = (
        SELECT waiting.rowid
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = gate.value AND waiting.state = 'waiting'
        ORDER BY waiting.queue, waiting.priority
        LIMIT 1
    )
    UNION ALL
    SELECT lane.gate, next.queue, next.priority
    FROM lane
    CROSS JOIN fencerow.jobs AS next ON next.rowid = COALESCE(
        {{next lane at the gate}}
    )
)

-- fragment: is passed over
-- Nobody claimed the turn of a job of this queue at this gate: others go first for a while. Not so if that was noted in an
-- hour to come, before the clock went back.
EXISTS (SELECT 1
        FROM fencerow.passed_queues AS passed
        WHERE passed.gate = lane.gate AND passed.queue = lane.queue
          AND passed.since <= fencerow.now() AND passed.until > fencerow.now())

-- fragment: is open
-- Nobody has paused its queue, and it is not passed over.
NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name = lane.queue AND queue.paused_at IS NOT NULL)
AND NOT {{is passed over}}

-- fragment: may go
-- It waits in this lane, is due, and has not expired.
waiting.gate = lane.gate
AND waiting.queue = lane.queue
AND waiting.priority = lane.priority
AND waiting.state = 'waiting'
AND {{due}}
AND COALESCE(waiting.expires_at > fencerow.now(), 1)

-- name: gates_beside
-- Which other gates those need who wait at these and come first.
WITH RECURSIVE {{lanes at gates}}
SELECT DISTINCT next.exclusive, next.limits
FROM lane
CROSS JOIN fencerow.jobs AS next ON next.rowid IN (
    SELECT waiting.rowid
    FROM fencerow.jobs AS waiting
    WHERE {{may go}}
    ORDER BY waiting.run_at, waiting.id
    LIMIT :limit
)
WHERE {{is open}}
  AND +next.limits IS NOT NULL;

-- name: gates_left
-- Those of these gates where somebody may go who has got no turn: at those of keys where one is free, and at those of limits,
-- whose rules are not read here.
WITH RECURSIVE {{lanes at gates}}
SELECT DISTINCT lane.gate
FROM lane
CROSS JOIN fencerow.jobs AS first ON first.rowid = (
    SELECT waiting.rowid
    FROM fencerow.jobs AS waiting
    WHERE {{may go}}
    ORDER BY waiting.run_at, waiting.id
    LIMIT 1
)
WHERE {{is open}}
  AND (substr(lane.gate, 1, 4) <> 'key:'
       OR (SELECT count(*)
           FROM fencerow.jobs AS holder
           WHERE holder.exclusive = substr(lane.gate, 5) AND holder.state IN ('queued', 'running'))
          < COALESCE(first.exclusive_at_once, 1));

-- name: count_turns
-- Of each of these gates when it is to be looked at next, how many jobs have a turn there, how many of these nobody has started
-- with it (told of limits), and the least that one of a key allows. Under limits only those of :counted
-- are counted. Then for which job a turn is kept there, and until when: none is kept for another until as much time has passed.
-- Last how many wait there, two at most.
-- Jobs with the same limits are counted before the names are taken apart, and counts meet in a sort: the planner looks up neither
-- by a walk over all, however few rows it takes the tables to have.
SELECT gate.name, gate.next_at, held.taken, held.unclaimed, held.least,
       CASE WHEN gate.kept_until > fencerow.now() THEN gate.kept_for END,
       CASE WHEN gate.kept_until > fencerow.now() - CAST(:kept_s * 1000000 AS INTEGER) THEN gate.kept_until END,
       (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = gate.name AND waiting.state = 'waiting' LIMIT 2) AS few)
FROM (SELECT either.gate, sum(either.taken) AS taken, sum(either.unclaimed) AS unclaimed, min(either.at_once) AS least
      FROM (SELECT wanted.value AS gate, holder.rowid IS NOT NULL AS taken, 0 AS unclaimed,
                   CASE WHEN holder.rowid IS NOT NULL THEN COALESCE(holder.exclusive_at_once, 1) END AS at_once
            FROM json_each(:gates) AS wanted
            LEFT JOIN fencerow.jobs AS holder
                   ON holder.exclusive = CASE WHEN substr(wanted.value, 1, 4) = 'key:' THEN substr(wanted.value, 5) END
                  AND holder.state IN ('queued', 'running')
            UNION ALL
            SELECT 'limit:' || named.value, alike.taken, alike.unclaimed, NULL
            FROM (SELECT holder.limits, count(*) AS taken,
                         sum(holder.state = 'queued' AND COALESCE(holder.claimed_at < holder.turned_at, 1)) AS unclaimed
                  FROM fencerow.jobs AS holder
                  WHERE holder.state IN ('queued', 'running')
                    AND holder.limits IS NOT NULL
                    AND :counted <> '[]'
                  GROUP BY holder.limits) AS alike
            CROSS JOIN json_each(alike.limits) AS named
            WHERE 'limit:' || named.value IN (SELECT value FROM json_each(:counted))) AS either
      GROUP BY either.gate) AS held
CROSS JOIN fencerow.gates AS gate ON gate.name = held.gate;

-- name: find_turns
-- The first :wanted jobs of each lane at these gates that may go. Those of paused queues, and of queues where nobody claims,
-- are passed over: they block nobody.
WITH RECURSIVE {{lanes at gates}}
SELECT lane.gate, next.id, COALESCE(next.exclusive_at_once, 1), next.exclusive, next.limits, next.priority, next.run_at,
       next.run_at < fencerow.now() - CAST(:aged_s * 1000000 AS INTEGER)
FROM lane
CROSS JOIN fencerow.jobs AS next ON next.rowid IN (
    SELECT waiting.rowid
    FROM fencerow.jobs AS waiting
    WHERE {{may go}}
    ORDER BY waiting.run_at, waiting.id
    LIMIT :wanted
)
WHERE {{is open}};

-- name: find_kept
-- Those of these jobs, for which turns are kept, that may go. For the others nothing is kept any more, or not now.
SELECT waiting.gate, waiting.id, COALESCE(waiting.exclusive_at_once, 1), waiting.exclusive, waiting.limits, waiting.priority,
       waiting.run_at, 1
FROM fencerow.jobs AS waiting
WHERE waiting.id IN (SELECT value FROM json_each(:ids))
  AND +waiting.state = 'waiting'
  AND +waiting.gate IS NOT NULL
  AND {{due}}
  AND COALESCE(waiting.expires_at > fencerow.now(), 1)
  AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL);

-- name: keep_turns
-- Keep the next turn at these gates for a job, for a while.
UPDATE fencerow.gates
SET kept_for = :id, kept_until = fencerow.now() + CAST(:kept_s * 1000000 AS INTEGER)
WHERE name IN (SELECT value FROM json_each(:gates));

-- name: keep_no_turns
-- Keep none at these gates: the job for which they were kept has its turns.
UPDATE fencerow.gates
SET kept_for = NULL, kept_until = NULL
WHERE name IN (SELECT value FROM json_each(:gates));

-- name: give_turns
-- Queue jobs whose turn it is. They keep their place in their lane; whoever calls lowers the marks. They are due now for
-- everybody, whoever knows what the clock had reached: nobody may hold a turn that no worker would take.
-- Guard: waiting at a gate. The turns of all its gates are counted by now.
UPDATE fencerow.jobs
SET state = 'queued',
    gate = NULL,
    run_at = min(run_at, fencerow.now()),
    turned_at = fencerow.now()
WHERE id IN (SELECT value FROM json_each(:ids))
  AND +state = 'waiting'
  AND +gate IS NOT NULL
RETURNING id, queue, priority, run_at, 0, lane;

-- fragment: line of those alike
-- The first :wanted at each of these gates of limits that may go, each with its place there, and whether nobody up to it needs
-- another gate too.
first (gate, queue, priority, id, run_at, alone) AS MATERIALIZED (
    SELECT lane.gate, lane.queue, lane.priority, next.id, next.run_at,
           +next.exclusive IS NULL AND +next.limits = json_array(substr(lane.gate, 7))
    FROM lane
    CROSS JOIN fencerow.jobs AS next ON next.rowid IN (
        SELECT waiting.rowid
        FROM fencerow.jobs AS waiting
        WHERE {{may go}}
        ORDER BY waiting.run_at, waiting.id
        LIMIT :wanted
    )
    WHERE {{is open}}
),
line (id, gate, queue, priority, run_at, place, goes) AS MATERIALIZED (
    SELECT first.id, first.gate, first.queue, first.priority, first.run_at,
           row_number() OVER earlier, min(COALESCE(first.alone, 0)) OVER earlier
    FROM first
    WINDOW earlier AS (PARTITION BY first.gate ORDER BY first.priority DESC, first.run_at, first.id ROWS UNBOUNDED PRECEDING)
)

-- fragment: workers that live
-- How many workers live, by their leases, which an index has.
(SELECT count(*) FROM fencerow.workers AS worker WHERE worker.state = 'alive' AND worker.lease_until > (SELECT fencerow.now()))

-- name: find_alike
-- Those to whom `give_alike` would give turns, in no order: the gate of each, its queue, how many workers live, its priority and when it was due, and whether
-- somebody was found who needs more. For a worker that claims them itself.
WITH RECURSIVE {{lanes at gates}},
{{line of those alike}}
SELECT line.id, line.gate, line.queue, {{workers that live}}, line.priority, line.run_at,
       EXISTS (SELECT 1 FROM line WHERE NOT line.goes)
FROM line
WHERE line.goes AND line.place <= :wanted;

-- name: give_alike
-- Give turns to the first :wanted at each of these gates of limits that may go, in the order of their places, up to the first who
-- needs another gate too. `find_turns` and `give_turns` in one, for those that most gates of limits have: nothing is to be chosen
-- among jobs that need one gate each. Tells the gate of each, and always that there may be somebody who needs more.
-- Guard: that of `give_turns`; the turns of the gates are counted by now.
WITH RECURSIVE {{lanes at gates}},
{{line of those alike}}
UPDATE fencerow.jobs
SET state = 'queued',
    gate = NULL,
    run_at = min(run_at, fencerow.now()),
    turned_at = fencerow.now()
WHERE id IN (SELECT line.id FROM line WHERE line.goes AND line.place <= :wanted)
  AND +state = 'waiting'
  AND +gate IS NOT NULL
RETURNING id, queue, priority, run_at, 0, lane, 'limit:' || json_extract(limits, '$[0]'), 1;

-- name: send_on
-- Let jobs wait at another of their gates, which is full. Guard: waiting at a gate.
-- What was sent is read once, and not again for each of the jobs.
UPDATE fencerow.jobs
SET gate = sent.gate
FROM (SELECT json_extract(value, '$.id') AS id, json_extract(value, '$.gate') AS gate FROM json_each(:sent)) AS sent
WHERE fencerow.jobs.id = sent.id
  AND +fencerow.jobs.state = 'waiting'
  AND +fencerow.jobs.gate IS NOT NULL;

-- name: note_gates
-- Write when each gate is to be looked at next. Where a turn is free (:gates), that is when the next job that waits there may
-- go. Who may go now and got no turn is looked at again soon. Where no turn is free, it is when time makes room for
-- those who wait; and if only an end does, its arrival will tell. Only what is new is written.
-- The rows are there: what conflicts is changed. An UPDATE could be planned as a walk over all gates.
WITH RECURSIVE {{lanes at gates}},
told (gate, at) AS (
    SELECT lane.gate,
           max(CASE WHEN first.run_at <= fencerow.now()
                    THEN fencerow.now() + CAST(:soon_s * 1000000 AS INTEGER)
                    ELSE first.run_at END, COALESCE(passed.until, 0))
    FROM lane
    CROSS JOIN fencerow.jobs AS first ON first.rowid = (
        SELECT waiting.rowid
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = lane.gate
          AND waiting.queue = lane.queue
          AND waiting.priority = lane.priority
          AND waiting.state = 'waiting'
        ORDER BY waiting.run_at
        LIMIT 1
    )
    LEFT JOIN fencerow.passed_queues AS passed
           ON passed.gate = lane.gate AND passed.queue = lane.queue AND {{is passed over}}
    WHERE NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name = lane.queue AND queue.paused_at IS NOT NULL)
    UNION ALL
    SELECT json_extract(noted.value, '$.gate'),
           CASE WHEN json_extract(noted.value, '$.gate') NOT IN (SELECT value FROM json_each(:gates))
                 AND EXISTS (SELECT 1 FROM fencerow.jobs AS waiting
                             WHERE waiting.gate = json_extract(noted.value, '$.gate') AND waiting.state = 'waiting')
                THEN json_extract(noted.value, '$.again_us') END
    FROM json_each(:noted) AS noted
),
coming (gate, at) AS (SELECT told.gate, min(told.at) FROM told GROUP BY told.gate)
INSERT INTO fencerow.gates (name, next_at)
SELECT gate.name, coming.at
FROM coming
CROSS JOIN fencerow.gates AS gate ON gate.name = coming.gate
WHERE gate.next_at IS NOT coming.at
ON CONFLICT (name) DO UPDATE
SET next_at = excluded.next_at;
