-- Turns: of a key no more jobs run at once than it has slots. A job that needs a turn waits at a gate, in no lane, so
-- that a claim never meets it. A turn is not stored anywhere: the jobs of a key that are queued or running have its
-- turns. So whatever ends a job has given its turn back, and nobody can forget to.
-- Only a hand-over makes a job that waits at a gate queued. It counts and gives under the file's one write lock.
-- A job with limits needs a turn at several gates. It waits at one of them that is full, and gets all its turns at once.

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

-- at: when jobs have ended
-- Where a turn is free now, or somebody waits no longer: an arrival says that the gate is to be looked at.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT 'key:' || ended.exclusive FROM fencerow.ended AS ended WHERE ended.exclusive IS NOT NULL
UNION
SELECT 'limit:' || named.value
FROM fencerow.ended AS ended JOIN json_each(ended.limits) AS named
WHERE ended.limits IS NOT NULL;

-- at: when jobs are revived
-- Jobs come to their first gate again.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT {{first gate}}
FROM fencerow.revived AS revived
WHERE revived.exclusive IS NOT NULL OR revived.limits IS NOT NULL;

-- name: turns_wanted
-- Whether a gate is to be looked at, and in how many microseconds the next job at one will be due, and the next wait for a
-- label over.
SELECT EXISTS (SELECT 1 FROM fencerow.gate_arrivals),
       (SELECT min(gate.next_at) FROM fencerow.gates AS gate WHERE gate.next_at IS NOT NULL) - fencerow.now(),
       (SELECT run_at + CAST(affinity_wait_s * 1000000 AS INTEGER) - fencerow.now()
        FROM fencerow.jobs
        WHERE {{waits for its label}}
        ORDER BY run_at + CAST(affinity_wait_s * 1000000 AS INTEGER)
        LIMIT 1);

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
-- Take arrivals, the oldest first, and name the gates to be looked at: those, and those where a job has become due. All
-- others of the same gates are taken with them, for one look serves them all.
DELETE FROM fencerow.gate_arrivals
WHERE id IN (SELECT same.id
             FROM fencerow.gate_arrivals AS same
             WHERE same.gate IN (SELECT first.gate FROM fencerow.gate_arrivals AS first ORDER BY first.id LIMIT :limit)
             LIMIT 20 * :limit)
RETURNING gate;
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.next_at <= fencerow.now()
ORDER BY gate.next_at
LIMIT :limit;

-- name: lock_gates
-- Make the rows of gates that have none; the file's one write lock is held already. Guard: the primary key.
INSERT INTO fencerow.gates (name)
SELECT wanted.value
FROM json_each(:gates) AS wanted
WHERE true
ON CONFLICT (name) DO NOTHING;

-- fragment: lanes at gates
-- Where jobs wait at these gates: each queue there and each of its priorities, one step of the index for each. So a queue
-- that is paused or passed over costs a step, however many of its jobs wait, and so do those that are not due.
lane (gate, queue, priority) AS (
    SELECT gate.value, first.queue, first.priority
    FROM json_each(:gates) AS gate
    JOIN fencerow.jobs AS first ON first.rowid = (
        SELECT waiting.rowid
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = gate.value AND waiting.state = 'waiting'
        ORDER BY waiting.queue, waiting.priority
        LIMIT 1
    )
    UNION ALL
    SELECT lane.gate, next.queue, next.priority
    FROM lane
    JOIN fencerow.jobs AS next ON next.rowid = (
        SELECT waiting.rowid
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = lane.gate AND waiting.state = 'waiting'
          AND (waiting.queue, waiting.priority) > (lane.queue, lane.priority)
        ORDER BY waiting.queue, waiting.priority
        LIMIT 1
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
JOIN fencerow.jobs AS next ON next.rowid IN (
    SELECT waiting.rowid
    FROM fencerow.jobs AS waiting
    WHERE {{may go}}
    ORDER BY waiting.run_at, waiting.id
    LIMIT :limit
)
WHERE {{is open}}
  AND next.limits IS NOT NULL;

-- name: gates_left
-- Those of these gates where somebody may go who has got no turn: at those of keys where one is free, and at those of limits,
-- whose rules are not read here.
WITH RECURSIVE {{lanes at gates}}
SELECT DISTINCT lane.gate
FROM lane
JOIN fencerow.jobs AS first ON first.rowid = (
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
          < COALESCE(first.exclusive_slots, 1));

-- name: count_turns
-- Of each of these gates when it is to be looked at next, how many jobs have a turn there, how many of these nobody has started
-- with it (told of limits), and the least number of slots that one of a key allows. Under limits only those of :counted
-- are counted. Last for which job a turn is kept there, and until when: none is kept for another until as much time has passed.
SELECT gate.name, gate.next_at,
       CASE WHEN substr(gate.name, 1, 4) = 'key:'
            THEN (SELECT count(*)
                  FROM fencerow.jobs AS holder
                  WHERE holder.exclusive = substr(gate.name, 5)
                    AND holder.state IN ('queued', 'running'))
            ELSE COALESCE(held.taken, 0) END,
       COALESCE(held.unclaimed, 0),
       CASE WHEN substr(gate.name, 1, 4) = 'key:'
            THEN (SELECT min(COALESCE(holder.exclusive_slots, 1))
                  FROM fencerow.jobs AS holder
                  WHERE holder.exclusive = substr(gate.name, 5)
                    AND holder.state IN ('queued', 'running')) END,
       CASE WHEN gate.kept_until > fencerow.now() THEN gate.kept_for END,
       CASE WHEN gate.kept_until > fencerow.now() - CAST(:kept_s * 1000000 AS INTEGER) THEN gate.kept_until END
FROM json_each(:gates) AS wanted
JOIN fencerow.gates AS gate ON gate.name = wanted.value
LEFT JOIN (SELECT counted.value AS gate, count(held.value) AS taken, sum(held.unclaimed) AS unclaimed
           FROM json_each(:counted) AS counted
           LEFT JOIN (SELECT 'limit:' || named.value AS value,
                             holder.state = 'queued' AND COALESCE(holder.claimed_at < holder.turned_at, 1) AS unclaimed
                      FROM fencerow.jobs AS holder, json_each(holder.limits) AS named
                      WHERE holder.state IN ('queued', 'running')
                        AND holder.limits IS NOT NULL) AS held ON held.value = counted.value
           GROUP BY counted.value) AS held ON held.gate = gate.name;

-- name: find_turns
-- The first :wanted jobs of each lane at these gates that may go. Those of paused queues, and of queues where nobody claims,
-- are passed over: they block nobody.
WITH RECURSIVE {{lanes at gates}}
SELECT lane.gate, next.id, COALESCE(next.exclusive_slots, 1), next.exclusive, next.limits, next.priority, next.run_at,
       next.run_at < fencerow.now() - CAST(:aged_s * 1000000 AS INTEGER)
FROM lane
JOIN fencerow.jobs AS next ON next.rowid IN (
    SELECT waiting.rowid
    FROM fencerow.jobs AS waiting
    WHERE {{may go}}
    ORDER BY waiting.run_at, waiting.id
    LIMIT :wanted
)
WHERE {{is open}};

-- name: find_kept
-- Those of these jobs, for which turns are kept, that may go. For the others nothing is kept any more, or not now.
SELECT waiting.gate, waiting.id, COALESCE(waiting.exclusive_slots, 1), waiting.exclusive, waiting.limits, waiting.priority,
       waiting.run_at, 1
FROM fencerow.jobs AS waiting
WHERE waiting.id IN (SELECT value FROM json_each(:ids))
  AND waiting.state = 'waiting'
  AND waiting.gate IS NOT NULL
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
  AND state = 'waiting'
  AND gate IS NOT NULL
RETURNING id, queue, priority, run_at, 0, lane;

-- name: send_on
-- Let jobs wait at another of their gates, which is full. Guard: waiting at a gate.
UPDATE fencerow.jobs
SET gate = (SELECT json_extract(sent.value, '$.gate')
            FROM json_each(:sent) AS sent
            WHERE json_extract(sent.value, '$.id') = fencerow.jobs.id)
WHERE id IN (SELECT json_extract(sent.value, '$.id') FROM json_each(:sent) AS sent)
  AND state = 'waiting'
  AND gate IS NOT NULL;

-- name: find_unused_turns
-- Turns at these gates that nobody uses and that are to go on, with the reason: the gate is one of those that have stopped;
-- or a job of another queue could have the turn, and the queue of the job is paused, or nobody has claimed it for so long and
-- no attempt has used it. A turn of an hour to come was given before the clock went back: nobody has claimed it for
-- longer than can be told. What a strict job has started it keeps.
WITH RECURSIVE {{lanes at gates}},
wanted AS MATERIALIZED (
    SELECT lane.gate, lane.queue
    FROM lane
    WHERE {{is open}}
      AND EXISTS (SELECT 1
                  FROM fencerow.jobs AS waiting
                  WHERE waiting.gate = lane.gate
                    AND waiting.queue = lane.queue
                    AND waiting.priority = lane.priority
                    AND waiting.state = 'waiting'
                    AND waiting.run_at <= fencerow.now())
),
held (gate, job) AS MATERIALIZED (
    SELECT gate.value, holder.rowid
    FROM json_each(:gates) AS gate
    JOIN fencerow.jobs AS holder ON holder.exclusive = substr(gate.value, 5)
    WHERE substr(gate.value, 1, 4) = 'key:'
      AND holder.state IN ('queued', 'running')
      AND holder.state = 'queued'
    UNION ALL
    SELECT gate.value, under.job
    FROM json_each(:gates) AS gate
    JOIN (SELECT 'limit:' || named.value AS gate, holder.rowid AS job
          FROM fencerow.jobs AS holder, json_each(holder.limits) AS named
          WHERE holder.state IN ('queued', 'running')
            AND holder.state = 'queued'
            AND holder.limits IS NOT NULL) AS under ON under.gate = gate.value
)
SELECT turned.id, held.gate,
       CASE WHEN held.gate IN (SELECT value FROM json_each(:stopped)) THEN 'breaker'
            WHEN EXISTS (SELECT 1 FROM fencerow.queues AS queue
                         WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL) THEN 'paused'
            ELSE 'unclaimed' END
FROM held
JOIN fencerow.jobs AS turned ON turned.rowid = held.job
WHERE turned.state = 'queued'
  AND NOT (turned.strict AND COALESCE(turned.claimed_at >= turned.turned_at, 0))
  AND (held.gate IN (SELECT value FROM json_each(:stopped))
       OR (EXISTS (SELECT 1 FROM fencerow.queues AS queue
                   WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL)
           OR turned.turned_at NOT BETWEEN fencerow.now() - CAST(:unclaimed_s * 1000000 AS INTEGER)
                                       AND fencerow.now() + CAST(:unclaimed_s * 1000000 AS INTEGER)
              AND COALESCE(turned.claimed_at < turned.turned_at, 1))
          AND EXISTS (SELECT 1 FROM wanted WHERE wanted.gate = held.gate AND wanted.queue <> turned.queue));

-- name: take_turns_back
-- Let jobs that nobody has claimed wait for their turns again, in their places, each at the gate where that was found. Where
-- :taken says for how long, their queues are passed over there.
-- Guard: queued; a claim, a cancel or an expiry that came first makes this change nothing.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'yielded', :actor,
       json_object('why', json_extract(taken.value, '$.why'), 'gate', json_extract(taken.value, '$.gate'))
FROM json_each(:taken) AS taken
JOIN fencerow.jobs AS job ON job.id = json_extract(taken.value, '$.id')
WHERE job.state = 'queued';
INSERT INTO fencerow.passed_queues (gate, queue, since, until)
SELECT json_extract(taken.value, '$.gate'), job.queue, fencerow.now(),
       fencerow.now() + CAST(max(json_extract(taken.value, '$.passed_s')) * 1000000 AS INTEGER)
FROM json_each(:taken) AS taken
JOIN fencerow.jobs AS job ON job.id = json_extract(taken.value, '$.id')
WHERE job.state = 'queued' AND json_extract(taken.value, '$.passed_s') IS NOT NULL
GROUP BY json_extract(taken.value, '$.gate'), job.queue
ON CONFLICT (gate, queue) DO UPDATE
SET since = excluded.since, until = excluded.until;
UPDATE fencerow.jobs
SET state = 'waiting',
    gate = (SELECT json_extract(taken.value, '$.gate')
            FROM json_each(:taken) AS taken
            WHERE json_extract(taken.value, '$.id') = fencerow.jobs.id)
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state = 'queued'
RETURNING id;
INSERT INTO fencerow.gate_arrivals (gate)
SELECT 'key:' || job.exclusive
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids)) AND job.state = 'waiting' AND job.exclusive IS NOT NULL
UNION
SELECT 'limit:' || named.value
FROM fencerow.jobs AS job
JOIN json_each(job.limits) AS named
WHERE job.id IN (SELECT value FROM json_each(:ids)) AND job.state = 'waiting';

-- name: note_gates
-- Write when each gate is to be looked at next. Where a turn is free (:gates), that is when the next job that waits there may
-- go. Who may go now and got no turn is looked at again soon. Where no turn is free, it is when time makes room for
-- those who wait; and if only an end does, its arrival will tell. Only what is new is written.
WITH RECURSIVE {{lanes at gates}},
coming AS MATERIALIZED (
    SELECT lane.gate,
           min(max(CASE WHEN first.run_at <= fencerow.now()
                        THEN fencerow.now() + CAST(:soon_s * 1000000 AS INTEGER)
                        ELSE first.run_at END, COALESCE(passed.until, 0))) AS at
    FROM lane
    JOIN fencerow.jobs AS first ON first.rowid = (
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
    GROUP BY lane.gate
)
UPDATE fencerow.gates
SET next_at = next.at
FROM (SELECT gate.name,
             CASE WHEN gate.name IN (SELECT value FROM json_each(:gates)) THEN coming.at
                  WHEN EXISTS (SELECT 1 FROM fencerow.jobs AS waiting
                               WHERE waiting.gate = gate.name AND waiting.state = 'waiting')
                  THEN json_extract(noted.value, '$.again_us') END AS at
      FROM json_each(:noted) AS noted
      JOIN fencerow.gates AS gate ON gate.name = json_extract(noted.value, '$.gate')
      LEFT JOIN coming ON coming.gate = gate.name) AS next
WHERE fencerow.gates.name = next.name
  AND fencerow.gates.next_at IS NOT next.at;

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
