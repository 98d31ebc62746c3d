-- Arrivals: which gates are to be looked at.

-- name: arrive
-- Say that jobs come to these gates, in the transaction of their insert. Takes no lock, so a user's transaction may be
-- open for as long as it likes.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT come.gate
FROM unnest(CAST(:gates AS text[])) AS come (gate);

-- name: arrive_of_queue
-- Say that those of these gates are to be looked at where jobs of this queue wait.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT come.gate
FROM unnest(CAST(:gates AS text[])) AS come (gate)
WHERE EXISTS (SELECT 1
              FROM fencerow.jobs AS waiting
              WHERE waiting.gate = come.gate AND waiting.queue = :queue AND waiting.state = 'waiting');

-- name: take_arrivals
-- Take arrivals, the oldest first, and name the gates to be looked at: those, and those where a job has become due. All
-- others of the gates that are named are taken with them, for one look serves them all.
-- Behind :after, since the index has those that were taken for as long as somebody holds an old snapshot.
-- The gate of a key is not named where no turn is kept, no instant is noted that may be over, and nobody waits or a job that lets
-- nobody run beside itself has the turn: there is nothing to do. Whoever comes later leaves an arrival in the transaction in which he
-- comes, and it is not among these. So does whoever gives that turn up, or passes it on to one that does, for the turn is not
-- free in this snapshot. Each gate is looked up by its name (OFFSET 0): joined, each is compared with each job that waits, where the
-- planner believes that none does.
-- Guard: none; what is taken comes back if this transaction does not commit. Locked rows are taken by somebody else.
-- Arrivals are never written again, so what is locked is found by its place.
WITH first AS MATERIALIZED (
    SELECT oldest.ctid AS place, oldest.gate
    FROM fencerow.gate_arrivals AS oldest
    WHERE oldest.id > CAST(:after AS bigint)
    ORDER BY oldest.id
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
),
idle AS MATERIALIZED (
    SELECT left_gate.name
    FROM (SELECT DISTINCT first.gate AS name FROM first) AS left_gate
    WHERE starts_with(left_gate.name, 'key:')
      AND (NOT EXISTS (SELECT 1 FROM fencerow.jobs AS waiting
                       WHERE waiting.gate = left_gate.name AND waiting.state = 'waiting' OFFSET 0)
           OR EXISTS (SELECT 1 FROM fencerow.jobs AS holder
                      WHERE holder.exclusive = substr(left_gate.name, 5) AND holder.state IN ('queued', 'running')
                        AND COALESCE(holder.exclusive_at_once, 1) = 1 OFFSET 0))
      AND NOT EXISTS (SELECT 1 FROM fencerow.gates AS gate
                      WHERE gate.name = left_gate.name AND num_nonnulls(gate.next_at, gate.kept_until) > 0 OFFSET 0)
),
beside AS MATERIALIZED (
    SELECT same.ctid AS place
    FROM fencerow.gate_arrivals AS same
    WHERE same.gate = ANY(ARRAY(SELECT first.gate FROM first WHERE NOT first.gate IN (SELECT idle.name FROM idle)))
    LIMIT 20 * CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED
),
taken AS (
    DELETE FROM fencerow.gate_arrivals AS arrival
    WHERE arrival.ctid = ANY(ARRAY(SELECT first.place FROM first UNION SELECT beside.place FROM beside))
    RETURNING arrival.gate, arrival.id
)
SELECT CASE WHEN NOT taken.gate IN (SELECT idle.name FROM idle) THEN taken.gate END, taken.id FROM taken
UNION ALL
(SELECT gate.name, NULL
 FROM fencerow.gates AS gate
 WHERE gate.next_at <= (SELECT fencerow.now())
 ORDER BY gate.next_at
 LIMIT CAST(:limit AS integer));

-- name: turns_wanted
-- Whether a gate is to be looked at, by an arrival behind :after, and in how many microseconds the next will be by itself.
-- In the order of the ids, or the server would walk over the table, which has all that were taken.
SELECT (SELECT arrival.id FROM fencerow.gate_arrivals AS arrival
        WHERE arrival.id > CAST(:after AS bigint) ORDER BY arrival.id LIMIT 1) IS NOT NULL,
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
