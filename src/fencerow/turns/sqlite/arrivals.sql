-- Arrivals: which gates are to be looked at.

-- name: arrive
-- Say that jobs come to these gates, in the transaction of their insert.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT come.value
FROM json_each(:gates) AS come;

-- name: arrive_of_queue
-- Say that those of these gates are to be looked at where jobs of this queue wait.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT come.value
FROM json_each(:gates) AS come
WHERE EXISTS (SELECT 1
              FROM fencerow.jobs AS waiting
              WHERE waiting.gate = come.value AND waiting.queue = :queue AND waiting.state = 'waiting');

-- name: take_arrivals
-- Take arrivals, the oldest first, and name the gates to be looked at: those, and those where a job has become due. All
-- others of the same gates are taken with them, for one look serves them all.
-- From the beginning, whatever :after is: the file gives ids again once the greatest was taken, so one that comes later may be
-- smaller. It costs nothing, for those that were taken are gone from the index.
DELETE FROM fencerow.gate_arrivals
WHERE id IN (SELECT same.id
             FROM fencerow.gate_arrivals AS same
             WHERE same.gate IN (SELECT first.gate FROM fencerow.gate_arrivals AS first
                               ORDER BY first.id LIMIT :limit)
             LIMIT 20 * :limit)
RETURNING gate, id;
SELECT gate.name, NULL
FROM fencerow.gates AS gate
WHERE gate.next_at <= fencerow.now()
ORDER BY gate.next_at
LIMIT :limit;

-- name: turns_wanted
-- Whether a gate is to be looked at, by any arrival (see take_arrivals), and in how many microseconds the next will be by itself.
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
