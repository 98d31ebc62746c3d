-- Gates that nobody needs are forgotten.

-- name: forget_passed_queues
-- Forget whom nobody passes over any more.
DELETE FROM fencerow.passed_queues
WHERE until <= fencerow.now() OR since > fencerow.now();

-- name: gate_rows_after
-- How far some gates reach, in the order of the primary key: what a removal looks at in one go.
SELECT count(*) AS gates, max(few.name) AS last
FROM (SELECT gate.name FROM fencerow.gates AS gate WHERE gate.name > :after ORDER BY gate.name LIMIT :limit) AS few;

-- fragment: nobody needs it
-- Nobody is to be told when time makes room there, nobody waits there, and nobody has a turn of its key.
gate.next_at IS NULL
AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = gate.name AND waiting.state = 'waiting')
AND NOT (substr(gate.name, 1, 4) = 'key:' AND EXISTS (SELECT 1
                 FROM fencerow.jobs AS holder
                 WHERE holder.exclusive = substr(gate.name, 5) AND holder.state IN ('queued', 'running')))

-- name: lock_idle_gates
-- The gates up to this name that are idle; the write lock is held already.
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.name > :after
  AND gate.name <= :last
  AND {{nobody needs it}};

-- name: forget_gates
-- Remove gates that are idle. Guard: idle still. With its row, a gate would lose when it is to be looked at.
DELETE FROM fencerow.gates AS gate
WHERE gate.name IN (SELECT value FROM json_each(:gates))
  AND {{nobody needs it}}
RETURNING name;
