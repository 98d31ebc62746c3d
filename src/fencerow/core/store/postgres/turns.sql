-- Turns: of a key no more jobs run at once than it has slots. A job that needs a turn waits at a gate, in no lane, so
-- that a claim never meets it. A turn is not stored anywhere: the jobs of a key that are queued or running have its
-- turns. So whatever ends a job has given its turn back, and nobody can forget to.
-- Only a hand-over makes a job that waits at a gate queued. It locks the rows of its gates first, counts in a later
-- statement, and gives what is left.

-- name: arrive
-- Say that jobs come to these gates, and where they will stand there. It comes before their insert, in its transaction,
-- so that the place is none behind theirs. Takes no lock, so a user's transaction may be open for as long as it likes.
INSERT INTO fencerow.gate_arrivals (gate, priority, run_at)
SELECT come.gate, come.priority,
       COALESCE(fencerow.at(come.run_at_us), fencerow.now() + fencerow.seconds(come.delay_s))
FROM json_to_recordset(CAST(:come AS json)) AS come (
    gate text, priority smallint, run_at_us bigint, delay_s double precision
);

-- name: turns_wanted
-- Whether a gate is to be looked at, and in how many microseconds the next job at one will be due.
SELECT EXISTS (SELECT 1 FROM fencerow.gate_arrivals AS arrival),
       (SELECT fencerow.us(min(gate.next_at)) FROM fencerow.gates AS gate WHERE gate.next_at IS NOT NULL)
       - fencerow.us(fencerow.now());

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
-- Take arrivals, the oldest first, and name the gates to be looked at: those, and those where a job has become due.
-- Guard: none; what is taken comes back if this transaction does not commit. Locked rows are taken by somebody else.
WITH taken AS (
    DELETE FROM fencerow.gate_arrivals AS arrival
    WHERE arrival.id = ANY(ARRAY(
            SELECT first.id
            FROM fencerow.gate_arrivals AS first
            ORDER BY first.id
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
    RETURNING arrival.gate
)
SELECT taken.gate, true FROM taken
UNION ALL
(SELECT gate.name, false
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
ORDER BY wanted.name COLLATE "C"
ON CONFLICT (name) DO NOTHING;

-- name: lock_gates
-- Lock the gates, in sorted order, until the transaction ends: who gives turns there waits.
-- A statement of its own, before the one that counts: the snapshot of this one may be older than the turns that were
-- given by whoever held the lock.
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.name = ANY(CAST(:gates AS text[]))
ORDER BY gate.name COLLATE "C"
FOR UPDATE;

-- name: look_at_gates
-- How many turns are taken at each gate, the least number of slots that one of their jobs allows, and what the first that
-- waits there allows. Gates where nobody waits are left out.
SELECT gate.name, holders.taken, holders.least, head.slots
FROM fencerow.gates AS gate
CROSS JOIN LATERAL (
    SELECT count(*) AS taken, min(COALESCE(holder.exclusive_slots, 1)) AS least
    FROM fencerow.jobs AS holder
    WHERE holder.exclusive = substr(gate.name, 5)
      AND holder.state IN ('queued', 'running')
) AS holders
CROSS JOIN LATERAL (
    SELECT COALESCE(waiting.exclusive_slots, 1) AS slots
    FROM fencerow.jobs AS waiting
    WHERE waiting.gate = gate.name
      AND waiting.state = 'waiting'
    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
    LIMIT 1
) AS head
WHERE gate.name = ANY(CAST(:gates AS text[]));

-- name: find_turns
-- The first :wanted jobs that wait at each of these gates and are due, locked. Those of paused queues and those that
-- somebody locks are passed over: they block nobody.
-- The limit stands in a LATERAL of its own: as an array of a correlated subquery it gave a gate's turns many times.
SELECT gate.name, next.id, next.slots
FROM unnest(CAST(:gates AS text[])) AS gate (name)
CROSS JOIN LATERAL (
    SELECT waiting.id, COALESCE(waiting.exclusive_slots, 1) AS slots, waiting.priority, waiting.run_at
    FROM fencerow.jobs AS waiting
    WHERE waiting.gate = gate.name
      AND waiting.state = 'waiting'
      AND waiting.run_at <= (SELECT fencerow.now())
      AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                      WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)
    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
    LIMIT CAST(:wanted AS integer)
    FOR UPDATE SKIP LOCKED
) AS next
ORDER BY gate.name, next.priority DESC, next.run_at, next.id;

-- name: give_turns
-- Queue jobs whose turn it is. They keep their place in their lane; whoever calls lowers the marks.
-- Guard: waiting at a gate. The gate's row is locked and counted by now.
UPDATE fencerow.jobs AS job
SET state = 'queued',
    gate = NULL
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state = 'waiting'
  AND job.gate IS NOT NULL
RETURNING job.id, job.queue, job.priority, fencerow.us(job.run_at), false;

-- name: note_gates
-- Write when the next job that waits at each gate will be due, where a turn is free there. Where none is, an arrival
-- will tell when one is. Only what is new is written.
WITH RECURSIVE seen AS MATERIALIZED (
    SELECT gate.name, gate.next_at, holders.taken < COALESCE(holders.least, 1) AS free
    FROM fencerow.gates AS gate
    CROSS JOIN LATERAL (
        SELECT count(*) AS taken, min(COALESCE(holder.exclusive_slots, 1)) AS least
        FROM fencerow.jobs AS holder
        WHERE holder.exclusive = substr(gate.name, 5)
          AND holder.state IN ('queued', 'running')
    ) AS holders
    WHERE gate.name = ANY(CAST(:gates AS text[]))
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
)
UPDATE fencerow.gates AS gate
SET next_at = coming.at
FROM seen LEFT JOIN coming ON coming.name = seen.name
WHERE gate.name = seen.name
  AND seen.next_at IS DISTINCT FROM coming.at;
