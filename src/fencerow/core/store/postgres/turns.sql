-- Turns: of a key no more jobs run at once than it has slots. A job that needs a turn waits at a gate, in no lane, so
-- that a claim never meets it. A turn is not stored anywhere: the jobs of a key that are queued or running have its
-- turns. So whatever ends a job has given its turn back, and nobody can forget to.
-- Only a hand-over makes a job that waits at a gate queued. It locks the rows of its gates first, counts in a later
-- statement, and gives what is left.
-- A job with limits needs a turn at several gates. It waits at one of them that is full, and gets all its turns at once.

-- name: arrive
-- Say that jobs come to these gates, in the transaction of their insert. Takes no lock, so a user's transaction may be
-- open for as long as it likes.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT come.gate
FROM unnest(CAST(:gates AS text[])) AS come (gate);

-- at: when jobs have ended
-- Where a turn is free now, or somebody waits no longer: an arrival says that the gate is to be looked at.
left_gates AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT 'key:' || ended.exclusive FROM ended WHERE ended.exclusive IS NOT NULL
    UNION
    SELECT 'limit:' || unnest(ended.limits) FROM ended WHERE ended.limits IS NOT NULL
)

-- at: when jobs are revived
-- Jobs come to their first gate again.
come_again AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT {{first gate}}
    FROM revived AS job
    WHERE job.exclusive IS NOT NULL OR job.limits IS NOT NULL
)

-- name: turns_wanted
-- Whether a gate is to be looked at, and in how many microseconds the next job at one will be due, and the next wait for a
-- label over.
SELECT EXISTS (SELECT 1 FROM fencerow.gate_arrivals AS arrival),
       (SELECT fencerow.us(min(gate.next_at)) FROM fencerow.gates AS gate WHERE gate.next_at IS NOT NULL)
       - fencerow.us(fencerow.now()),
       (SELECT fencerow.us(fencerow.later(job.run_at, job.affinity_wait_s)) - fencerow.us(fencerow.now())
        FROM fencerow.jobs AS job
        WHERE {{waits for its label}}
        ORDER BY fencerow.later(job.run_at, job.affinity_wait_s)
        LIMIT 1);

-- name: gates_after
-- Where jobs wait, in the order of the names behind :after: a skip scan, one index descent for each gate.
WITH RECURSIVE found AS (
    (SELECT waiting.gate AS name
     FROM fencerow.jobs AS waiting
     WHERE waiting.state = 'waiting' AND waiting.gate > CAST(:after AS text)
     ORDER BY waiting.gate
     LIMIT 1)
    UNION ALL
    SELECT next.name
    FROM found
    CROSS JOIN LATERAL (
        SELECT waiting.gate AS name
        FROM fencerow.jobs AS waiting
        WHERE waiting.state = 'waiting' AND waiting.gate > found.name
        ORDER BY waiting.gate
        LIMIT 1
    ) AS next
)
SELECT found.name FROM found LIMIT CAST(:limit AS integer);

-- name: take_arrivals
-- Take arrivals, the oldest first, and name the gates to be looked at: those, and those where a job has become due. All
-- others of the same gates are taken with them, for one look serves them all.
-- Guard: none; what is taken comes back if this transaction does not commit. Locked rows are taken by somebody else.
WITH first AS MATERIALIZED (
    SELECT oldest.gate
    FROM fencerow.gate_arrivals AS oldest
    ORDER BY oldest.id
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
),
taken AS (
    DELETE FROM fencerow.gate_arrivals AS arrival
    WHERE arrival.id = ANY(ARRAY(
            SELECT same.id
            FROM fencerow.gate_arrivals AS same
            WHERE same.gate = ANY(ARRAY(SELECT first.gate FROM first))
            LIMIT 20 * CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
    RETURNING arrival.gate
)
SELECT taken.gate FROM taken
UNION ALL
(SELECT gate.name
 FROM fencerow.gates AS gate
 WHERE gate.next_at <= (SELECT fencerow.now())
 ORDER BY gate.next_at
 LIMIT CAST(:limit AS integer));

-- name: know_gates
-- Make the rows of gates that have none. Waits for a hand-over that makes the same one.
-- Guard: the primary key. Written in sorted order, so that two never wait for each other in a ring.
INSERT INTO fencerow.gates (name)
SELECT wanted.name
FROM unnest(CAST(:gates AS text[])) AS wanted (name)
WHERE NOT EXISTS (SELECT 1 FROM fencerow.gates AS known WHERE known.name = wanted.name)
ORDER BY wanted.name COLLATE "C"
ON CONFLICT (name) DO NOTHING;

-- name: lock_gates
-- Lock the gates, in sorted order, until the transaction ends: who gives turns there waits.
-- A statement of its own, before the one that counts: the snapshot of this one may be older than the turns that were
-- given by whoever held the lock.
SELECT gate.name, fencerow.us(gate.next_at)
FROM fencerow.gates AS gate
WHERE gate.name = ANY(CAST(:gates AS text[]))
ORDER BY gate.name COLLATE "C"
FOR UPDATE;

-- fragment: comes to its turn
-- It is due, has not expired, and nobody has paused its queue. Whoever asks for the first that wait at a gate says it in a CASE: the server
-- takes these conditions to be rare, and would read and sort all that wait there to find one for which they hold.
{{due}}
AND COALESCE(waiting.expires_at > (SELECT fencerow.now()), true)
AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)

-- name: gates_beside
-- Which other gates those need who wait at these and come first: all are locked in one sorted order, or in none.
SELECT next.exclusive, CAST(to_json(next.limits) AS text)
FROM unnest(CAST(:gates AS text[])) AS gate (name)
CROSS JOIN LATERAL (
    SELECT waiting.exclusive, waiting.limits
    FROM fencerow.jobs AS waiting
    WHERE waiting.gate = gate.name
      AND waiting.state = 'waiting'
      AND CASE WHEN {{comes to its turn}} THEN true END IS NOT NULL
    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
    LIMIT CAST(:limit AS integer)
) AS next
WHERE next.limits IS NOT NULL
GROUP BY next.exclusive, next.limits;

-- name: look_at_keys
-- How many turns of each key are taken, the least number of slots that one of its jobs allows, and what the first that
-- waits there allows, if anybody does.
SELECT gate.name, holders.taken, holders.least, head.slots
FROM fencerow.gates AS gate
CROSS JOIN LATERAL (
    SELECT count(*) AS taken, min(COALESCE(holder.exclusive_slots, 1)) AS least
    FROM fencerow.jobs AS holder
    WHERE holder.exclusive = substr(gate.name, 5)
      AND holder.state IN ('queued', 'running')
) AS holders
LEFT JOIN LATERAL (
    SELECT COALESCE(waiting.exclusive_slots, 1) AS slots
    FROM fencerow.jobs AS waiting
    WHERE waiting.gate = gate.name
      AND waiting.state = 'waiting'
    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
    LIMIT 1
) AS head ON true
WHERE gate.name = ANY(CAST(:gates AS text[]));

-- name: count_limited
-- How many jobs have a turn under each of these limits.
SELECT gate.name, (SELECT count(*)
                   FROM fencerow.jobs AS holder
                   WHERE holder.limits @> ARRAY[substr(gate.name, 7)]
                     AND holder.state IN ('queued', 'running'))
FROM unnest(CAST(:gates AS text[])) AS gate (name);

-- fragment: is passed over
-- Nobody claimed the turn of a job of this queue at this gate: others go first for a while. Whatever a clock that went back
-- makes of times: one that has run since is none of those, and none whose turn was taken back in an hour to come.
(SELECT back.id
 FROM fencerow.jobs AS back
 WHERE back.gate = waiting.gate
   AND back.queue = waiting.queue
   AND back.state = 'waiting'
   AND back.turned_at > (SELECT fencerow.now())
   AND COALESCE(back.claimed_at < back.turned_at, true)
   AND (SELECT event.at
        FROM fencerow.job_events AS event
        WHERE event.job_id = back.id AND event.kind = 'yielded'
        ORDER BY event.id DESC
        LIMIT 1) <= (SELECT fencerow.now())
 LIMIT 1) IS NOT NULL

-- name: find_turns
-- The first :wanted jobs that wait at each of these gates and are due, locked. Those of paused queues, of queues
-- where nobody claims, and those that somebody locks are passed over: they block nobody.
-- The limit stands in a LATERAL of its own: as an array of a correlated subquery it gave a gate's turns many times.
SELECT gate.name, next.id, next.slots, next.exclusive, CAST(to_json(next.limits) AS text)
FROM unnest(CAST(:gates AS text[])) AS gate (name)
CROSS JOIN LATERAL (
    SELECT waiting.id, COALESCE(waiting.exclusive_slots, 1) AS slots, waiting.priority, waiting.run_at,
           waiting.exclusive, waiting.limits
    FROM fencerow.jobs AS waiting
    WHERE waiting.gate = gate.name
      AND waiting.state = 'waiting'
      AND CASE WHEN {{comes to its turn}} AND NOT {{is passed over}} THEN true END IS NOT NULL
    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
    LIMIT CAST(:wanted AS integer)
    FOR UPDATE SKIP LOCKED
) AS next
ORDER BY next.priority DESC, next.run_at, next.id;

-- name: give_turns
-- Queue jobs whose turn it is. They keep their place in their lane; whoever calls lowers the marks. They are due now for
-- everybody, whoever knows what the clock had reached: nobody may hold a turn that no worker would take.
-- Guard: waiting at a gate. The rows of all its gates are locked and counted by now.
UPDATE fencerow.jobs AS job
SET state = 'queued',
    gate = NULL,
    run_at = least(job.run_at, fencerow.now()),
    turned_at = (SELECT fencerow.now())
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state = 'waiting'
  AND job.gate IS NOT NULL
RETURNING job.id, job.queue, job.priority, fencerow.us(job.run_at), false, job.lane;

-- name: send_on
-- Let jobs wait at another of their gates, which is full. Guard: waiting at a gate. The rows of both are locked.
UPDATE fencerow.jobs AS job
SET gate = sent.gate
FROM json_to_recordset(CAST(:sent AS json)) AS sent (id uuid, gate text)
WHERE job.id = sent.id
  AND job.state = 'waiting'
  AND job.gate IS NOT NULL;

-- name: find_idle_turns
-- Turns at these gates that are to go on, with the reason: the queue of the job is paused, or nobody has claimed it for so
-- long, no attempt has used the turn, and a job of another queue could have it. Of those that wait the first 1,000 are
-- looked at. A turn of an hour to come was given before the clock went back: nobody has claimed it for longer than can be
-- told. What a strict job has started it keeps. The jobs are locked; those that somebody locks are left.
SELECT idle.id, idle.paused
FROM unnest(CAST(:gates AS text[])) AS gate (name)
CROSS JOIN LATERAL (
    SELECT turned.id, EXISTS (SELECT 1 FROM fencerow.queues AS queue
                              WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL) AS paused
    FROM fencerow.jobs AS turned
    WHERE turned.exclusive = substr(gate.name, 5)
      AND turned.state = 'queued'
      AND (EXISTS (SELECT 1 FROM fencerow.queues AS queue
                   WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL)
           AND NOT (turned.strict AND COALESCE(turned.claimed_at >= turned.turned_at, false))
           OR turned.turned_at
              NOT BETWEEN (SELECT fencerow.now()) - fencerow.seconds(CAST(:unclaimed_s AS double precision))
                      AND (SELECT fencerow.now()) + fencerow.seconds(CAST(:unclaimed_s AS double precision))
              AND COALESCE(turned.claimed_at < turned.turned_at, true))
      AND EXISTS (SELECT 1
                  FROM (SELECT waiting.gate, waiting.queue
                        FROM fencerow.jobs AS waiting
                        WHERE waiting.gate = gate.name
                          AND waiting.state = 'waiting'
                          AND waiting.run_at <= (SELECT fencerow.now())
                        ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
                        LIMIT 1000) AS waiting
                  WHERE waiting.queue <> turned.queue
                    AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                                    WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)
                    AND NOT {{is passed over}})
    FOR UPDATE SKIP LOCKED
) AS idle
WHERE starts_with(gate.name, 'key:');

-- name: find_stopped_turns
-- Turns under a limit that has stopped, which nobody has claimed. What a strict job has started it keeps. The jobs are
-- locked; those that somebody locks are left: a claim has them.
SELECT turned.id
FROM fencerow.jobs AS turned
WHERE turned.limits @> ARRAY[substr(:gate, 7)]
  AND turned.state = 'queued'
  AND NOT (turned.strict AND COALESCE(turned.claimed_at >= turned.turned_at, false))
FOR UPDATE SKIP LOCKED;

-- name: take_turns_back
-- Let jobs that nobody has claimed wait for their turns again, in their places: at this gate, or at that of their key. With :passed_s the jobs of their queues are
-- passed over at their gates for so long.
-- Guard: queued; a claim, a cancel or an expiry that came first makes this change nothing.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = 'waiting',
        gate = COALESCE(CAST(:gate AS text), 'key:' || job.exclusive),
        turned_at = COALESCE(clock.now + fencerow.seconds(CAST(:passed_s AS double precision)), job.turned_at)
    FROM clock
    WHERE job.id = ANY(CAST(:ids AS uuid[]))
      AND job.state = 'queued'
      AND COALESCE(job.exclusive, CAST(:gate AS text)) IS NOT NULL
    RETURNING job.id, job.attempt, job.state, job.exclusive, job.limits, job.turned_at, clock.now AS at
),
left_gates AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    {{gates of the moved}}
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.at, 'yielded', CAST(:actor AS text),
           json_build_object('why', CAST(:why AS text), 'key', moved.exclusive, 'gate', CAST(:gate AS text))
    FROM moved
)
SELECT CAST(id AS text) FROM moved;

-- name: note_gates
-- Write when each gate is to be looked at next. Where a turn is free, that is when the next job that waits there will be
-- due; where none is, when time makes room for those who wait; and if only an end does, its arrival will tell. Only what
-- is new is written.
WITH RECURSIVE seen AS MATERIALIZED (
    SELECT gate.name, gate.next_at, noted.free, noted.again_us
    FROM json_to_recordset(CAST(:noted AS json)) AS noted (gate text, free boolean, again_us bigint)
    JOIN fencerow.gates AS gate ON gate.name = noted.gate
),
lane AS (
    SELECT seen.name, first.priority
    FROM seen
    CROSS JOIN LATERAL (
        SELECT waiting.priority
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = seen.name AND waiting.state = 'waiting'
        ORDER BY waiting.priority DESC
        LIMIT 1
    ) AS first
    WHERE seen.free
    UNION ALL
    SELECT lane.name, below.priority
    FROM lane
    CROSS JOIN LATERAL (
        SELECT waiting.priority
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = lane.name AND waiting.state = 'waiting' AND waiting.priority < lane.priority
        ORDER BY waiting.priority DESC
        LIMIT 1
    ) AS below
),
coming AS MATERIALIZED (
    SELECT lane.name, min(first.run_at) AS at
    FROM lane
    CROSS JOIN LATERAL (
        SELECT waiting.run_at
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = lane.name
          AND waiting.state = 'waiting'
          AND waiting.priority = lane.priority
          AND waiting.run_at > (SELECT fencerow.now())
        ORDER BY waiting.run_at
        LIMIT 1
    ) AS first
    GROUP BY lane.name
),
next AS (
    SELECT seen.name, seen.next_at AS known,
           CASE WHEN seen.free THEN coming.at
                WHEN EXISTS (SELECT 1 FROM fencerow.jobs AS waiting
                             WHERE waiting.gate = seen.name AND waiting.state = 'waiting')
                THEN fencerow.at(seen.again_us) END AS at
    FROM seen LEFT JOIN coming ON coming.name = seen.name
)
UPDATE fencerow.gates AS gate
SET next_at = next.at
FROM next
WHERE gate.name = next.name
  AND next.known IS DISTINCT FROM next.at;

-- name: gate_rows_after
-- How far some gates reach, in the order of the primary key: what a removal looks at in one go.
SELECT count(*) AS gates, max(few.name) AS last
FROM (SELECT gate.name FROM fencerow.gates AS gate WHERE gate.name > :after ORDER BY gate.name LIMIT CAST(:limit AS integer)) AS few;

-- fragment: nobody needs it
-- Nobody is to be told when time makes room there, nobody waits there, and nobody has a turn of its key.
gate.next_at IS NULL
AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = gate.name AND waiting.state = 'waiting')
AND NOT (starts_with(gate.name, 'key:') AND EXISTS (SELECT 1
                 FROM fencerow.jobs AS holder
                 WHERE holder.exclusive = substr(gate.name, 5) AND holder.state IN ('queued', 'running')))

-- name: lock_idle_gates
-- Lock the gates up to this name that seem to be idle. What somebody else has locked is in use.
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.name > :after
  AND gate.name <= :last
  AND {{nobody needs it}}
FOR UPDATE SKIP LOCKED;

-- name: forget_gates
-- Remove gates that are idle. A statement of its own, after the locks: a job that was sent to a gate before it was locked
-- is seen here. Guard: idle still. With its row, a gate would lose when it is to be looked at.
DELETE FROM fencerow.gates AS gate
WHERE gate.name = ANY(CAST(:gates AS text[]))
  AND {{nobody needs it}}
RETURNING gate.name;
