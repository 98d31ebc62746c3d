-- Gates that nobody needs are forgotten.

-- name: forget_passed_queues
-- Forget whom nobody passes over any more.
DELETE FROM fencerow.passed_queues AS passed
WHERE passed.until <= (SELECT fencerow.now()) OR passed.since > (SELECT fencerow.now());

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
