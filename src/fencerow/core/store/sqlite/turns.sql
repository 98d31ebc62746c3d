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

-- name: know_gates
-- Make the rows of gates that have none. Guard: the primary key.
INSERT INTO fencerow.gates (name)
SELECT wanted.value
FROM json_each(:gates) AS wanted
WHERE true
ON CONFLICT (name) DO NOTHING;

-- name: lock_gates
-- The gates; the write lock is held already.
SELECT gate.name, gate.next_at
FROM fencerow.gates AS gate
WHERE gate.name IN (SELECT value FROM json_each(:gates));

-- fragment: comes to its turn
-- It waits at this gate, is due, has not expired, and nobody has paused its queue.
waiting.gate = gate.value
AND waiting.state = 'waiting'
AND {{due}}
AND COALESCE(waiting.expires_at > fencerow.now(), 1)
AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)

-- name: gates_beside
-- Which other gates those need who wait at these and come first.
SELECT DISTINCT next.exclusive, next.limits
FROM json_each(:gates) AS gate
JOIN fencerow.jobs AS next ON next.id IN (
    SELECT waiting.id
    FROM fencerow.jobs AS waiting
    WHERE {{comes to its turn}}
    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
    LIMIT :limit
)
WHERE next.limits IS NOT NULL;

-- name: look_at_keys
-- How many turns of each key are taken, the least number of slots that one of its jobs allows, and what the first that
-- waits there allows, if anybody does.
SELECT wanted.value,
       (SELECT count(*)
        FROM fencerow.jobs AS holder
        WHERE holder.exclusive = substr(wanted.value, 5)
          AND holder.state IN ('queued', 'running')),
       (SELECT min(COALESCE(holder.exclusive_slots, 1))
        FROM fencerow.jobs AS holder
        WHERE holder.exclusive = substr(wanted.value, 5)
          AND holder.state IN ('queued', 'running')),
       (SELECT COALESCE(waiting.exclusive_slots, 1)
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = wanted.value
          AND waiting.state = 'waiting'
        ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
        LIMIT 1)
FROM json_each(:gates) AS wanted;

-- name: count_limited
-- How many jobs have a turn under each of these limits.
SELECT wanted.value, count(held.value)
FROM json_each(:gates) AS wanted
LEFT JOIN (SELECT named.value
           FROM fencerow.jobs AS holder, json_each(holder.limits) AS named
           WHERE holder.state IN ('queued', 'running')
             AND holder.limits IS NOT NULL) AS held ON held.value = substr(wanted.value, 7)
GROUP BY wanted.value;

-- fragment: is passed over
-- Nobody claimed the turn of a job of this queue at this gate: others go first for a while. Whatever a clock that went back
-- makes of times: one that has run since is none of those, and none whose turn was taken back in an hour to come.
(SELECT back.id
 FROM fencerow.jobs AS back
 WHERE back.gate = waiting.gate
   AND back.queue = waiting.queue
   AND back.state = 'waiting'
   AND back.turned_at > fencerow.now()
   AND COALESCE(back.claimed_at < back.turned_at, true)
   AND (SELECT event.at
        FROM fencerow.job_events AS event
        WHERE event.job_id = back.id AND event.kind = 'yielded'
        ORDER BY event.id DESC
        LIMIT 1) <= fencerow.now()
 LIMIT 1) IS NOT NULL

-- name: find_turns
-- The first :wanted jobs that wait at each of these gates and are due. Those of paused queues, and of queues
-- where nobody claims, are passed over: they block nobody.
SELECT gate.value, next.id, COALESCE(next.exclusive_slots, 1), next.exclusive, next.limits
FROM json_each(:gates) AS gate
JOIN fencerow.jobs AS next ON next.id IN (
    SELECT waiting.id
    FROM fencerow.jobs AS waiting
    WHERE {{comes to its turn}}
      AND NOT {{is passed over}}
    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
    LIMIT :wanted
)
ORDER BY next.priority DESC, next.run_at, next.id;

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

-- name: find_idle_turns
-- Turns at these gates that are to go on, with the reason: the queue of the job is paused, or nobody has claimed it for so
-- long, no attempt has used the turn, and a job of another queue could have it. Of those that wait the first 1,000 are
-- looked at. A turn of an hour to come was given before the clock went back: nobody has claimed it for longer than can be
-- told. What a strict job has started it keeps.
SELECT turned.id, EXISTS (SELECT 1 FROM fencerow.queues AS queue
                          WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL)
FROM json_each(:gates) AS gate
JOIN fencerow.jobs AS turned ON turned.exclusive = substr(gate.value, 5)
WHERE substr(gate.value, 1, 4) = 'key:'
  AND turned.state IN ('queued', 'running')
  AND turned.state = 'queued'
  AND (EXISTS (SELECT 1 FROM fencerow.queues AS queue
               WHERE queue.name = turned.queue AND queue.paused_at IS NOT NULL)
       AND NOT (turned.strict AND COALESCE(turned.claimed_at >= turned.turned_at, 0))
       OR turned.turned_at NOT BETWEEN fencerow.now() - CAST(:unclaimed_s * 1000000 AS INTEGER)
                                    AND fencerow.now() + CAST(:unclaimed_s * 1000000 AS INTEGER)
          AND COALESCE(turned.claimed_at < turned.turned_at, 1))
  AND EXISTS (SELECT 1
              FROM (SELECT waiting.gate, waiting.queue
                    FROM fencerow.jobs AS waiting
                    WHERE waiting.gate = gate.value
                      AND waiting.state = 'waiting'
                      AND waiting.run_at <= fencerow.now()
                    ORDER BY waiting.priority DESC, waiting.run_at, waiting.id
                    LIMIT 1000) AS waiting
              WHERE waiting.queue <> turned.queue
                AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                                WHERE queue.name = waiting.queue AND queue.paused_at IS NOT NULL)
                AND NOT {{is passed over}});

-- name: find_stopped_turns
-- Turns under a limit that has stopped, which nobody has claimed. What a strict job has started it keeps.
SELECT turned.id
FROM fencerow.jobs AS turned
WHERE turned.limits IS NOT NULL
  AND turned.state IN ('queued', 'running')
  AND turned.state = 'queued'
  AND EXISTS (SELECT 1 FROM json_each(turned.limits) AS named WHERE named.value = substr(:gate, 7))
  AND NOT (turned.strict AND COALESCE(turned.claimed_at >= turned.turned_at, 0));

-- name: take_turns_back
-- Let jobs that nobody has claimed wait for their turns again, in their places: at this gate, or at that of their key. With :passed_s the jobs of their queues are
-- passed over at their gates for so long.
-- Guard: queued; a claim, a cancel or an expiry that came first makes this change nothing.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'yielded', :actor, json_object('why', :why, 'key', job.exclusive, 'gate', :gate)
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state = 'queued'
  AND COALESCE(job.exclusive, :gate) IS NOT NULL;
UPDATE fencerow.jobs
SET state = 'waiting',
    gate = COALESCE(:gate, 'key:' || exclusive),
    turned_at = COALESCE(fencerow.now() + CAST(:passed_s * 1000000 AS INTEGER), turned_at)
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state = 'queued'
  AND COALESCE(exclusive, :gate) IS NOT NULL
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
-- Write when each gate is to be looked at next. Where a turn is free, that is when the next job that waits there will be
-- due; where none is, when time makes room for those who wait; and if only an end does, its arrival will tell. Only what
-- is new is written.
UPDATE fencerow.gates
SET next_at = next.at
FROM (SELECT json_extract(noted.value, '$.gate') AS name,
             CASE WHEN json_extract(noted.value, '$.free')
                  THEN (SELECT min(waiting.run_at)
                        FROM fencerow.jobs AS waiting
                        WHERE waiting.gate = json_extract(noted.value, '$.gate')
                          AND waiting.state = 'waiting'
                          AND waiting.run_at > fencerow.now())
                  WHEN EXISTS (SELECT 1 FROM fencerow.jobs AS waiting
                               WHERE waiting.gate = json_extract(noted.value, '$.gate')
                                 AND waiting.state = 'waiting')
                  THEN json_extract(noted.value, '$.again_us') END AS at
      FROM json_each(:noted) AS noted) AS next
WHERE fencerow.gates.name = next.name
  AND fencerow.gates.next_at IS NOT next.at;

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
