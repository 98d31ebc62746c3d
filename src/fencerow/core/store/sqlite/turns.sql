-- Turns: of a key no more jobs run at once than it has slots. A job that needs a turn waits at a gate, in no lane, so
-- that a claim never meets it. A turn is not stored anywhere: the jobs of a key that are queued or running have its
-- turns. So whatever ends a job has given its turn back, and nobody can forget to.
-- Only a hand-over makes a job that waits at a gate queued. It counts and gives under the file's one write lock.

-- name: arrive
-- Say that jobs come to these gates, and where they will stand there. It comes before their insert, in its transaction,
-- so that the place is none behind theirs.
INSERT INTO fencerow.gate_arrivals (gate, priority, run_at)
SELECT json_extract(come.value, '$.gate'), json_extract(come.value, '$.priority'),
       COALESCE(json_extract(come.value, '$.run_at_us'),
                fencerow.now() + CAST(json_extract(come.value, '$.delay_s') * 1000000 AS INTEGER))
FROM json_each(:come) AS come;

-- name: turns_wanted
-- Whether a gate is to be looked at, and in how many microseconds the next job at one will be due.
SELECT EXISTS (SELECT 1 FROM fencerow.gate_arrivals),
       (SELECT min(gate.next_at) FROM fencerow.gates AS gate WHERE gate.next_at IS NOT NULL) - fencerow.now();

-- name: gates_after
-- Where jobs wait, in the order of the names behind :after: a skip scan, one index descent for each gate.
WITH RECURSIVE found (name) AS (
    SELECT (SELECT min(waiting.gate)
            FROM fencerow.jobs AS waiting
            WHERE waiting.state = 'waiting' AND waiting.gate > :after)
    UNION ALL
    SELECT (SELECT min(waiting.gate)
            FROM fencerow.jobs AS waiting
            WHERE waiting.state = 'waiting' AND waiting.gate > found.name)
    FROM found
    WHERE found.name IS NOT NULL
    LIMIT :limit
)
SELECT found.name FROM found WHERE found.name IS NOT NULL;

-- name: take_arrivals
-- Take arrivals, the oldest first, and name the gates to be looked at: those, and those where a job has become due.
DELETE FROM fencerow.gate_arrivals
WHERE id IN (SELECT first.id FROM fencerow.gate_arrivals AS first ORDER BY first.id LIMIT :limit)
RETURNING gate, 1;
SELECT gate.name, 0
FROM fencerow.gates AS gate
WHERE gate.next_at <= fencerow.now()
ORDER BY gate.next_at
LIMIT :limit;

-- name: know_gates
-- Make the rows of gates that have none. Guard: the primary key.
INSERT INTO fencerow.gates (name)
SELECT wanted.value
FROM json_each(:gates) AS wanted
WHERE true
ON CONFLICT (name) DO NOTHING;

-- name: lock_gates
-- The gates; the write lock is held already.
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.name IN (SELECT value FROM json_each(:gates));

-- name: look_at_gates
-- How many turns are taken at each gate, the least number of slots that one of their jobs allows, and what the first that
-- waits there allows. Gates where nobody waits are left out.
SELECT seen.name, seen.taken, seen.least, seen.slots
FROM (SELECT wanted.value AS name,
             (SELECT count(*)
              FROM fencerow.jobs AS holder
              WHERE holder.exclusive = substr(wanted.value, 5)
                AND holder.state IN ('queued', 'running')) AS taken,
             (SELECT min(COALESCE(holder.exclusive_slots, 1))
              FROM fencerow.jobs AS holder
              WHERE holder.exclusive = substr(wanted.value, 5)
                AND holder.state IN ('queued', 'running')) AS least,
             (SELECT COALESCE(waiting.exclusive_slots, 1)
              FROM fencerow.jobs AS waiting
              WHERE waiting.gate = wanted.value
                AND waiting.state = 'waiting'
              ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
              LIMIT 1) AS slots
      FROM json_each(:gates) AS wanted) AS seen
WHERE seen.slots IS NOT NULL;

-- name: find_turns
-- The first :wanted jobs that wait at each of these gates and are due. Those of paused queues are passed over: they
-- block nobody.
SELECT gate.value, next.id, COALESCE(next.exclusive_slots, 1)
FROM json_each(:gates) AS gate
JOIN fencerow.jobs AS next ON next.id IN (
    SELECT waiting.id
    FROM fencerow.jobs AS waiting
    WHERE waiting.gate = gate.value
      AND waiting.state = 'waiting'
      AND waiting.run_at <= fencerow.now()
      AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                      WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)
    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
    LIMIT :wanted
)
ORDER BY gate.value, next.priority DESC, next.run_at, next.id;

-- name: give_turns
-- Queue jobs whose turn it is. They keep their place in their lane; whoever calls lowers the marks.
-- Guard: waiting at a gate. The turns of the gate are counted by now.
UPDATE fencerow.jobs
SET state = 'queued',
    gate = NULL
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state = 'waiting'
  AND gate IS NOT NULL
RETURNING id, queue, priority, run_at, 0;

-- name: note_gates
-- Write when the next job that waits at each gate will be due. Only what is new is written.
UPDATE fencerow.gates
SET next_at = (SELECT min(waiting.run_at)
               FROM fencerow.jobs AS waiting
               WHERE waiting.gate = fencerow.gates.name
                 AND waiting.state = 'waiting'
                 AND waiting.run_at > fencerow.now())
WHERE name IN (SELECT value FROM json_each(:gates))
  AND next_at IS NOT (SELECT min(waiting.run_at)
                      FROM fencerow.jobs AS waiting
                      WHERE waiting.gate = fencerow.gates.name
                        AND waiting.state = 'waiting'
                        AND waiting.run_at > fencerow.now());
