-- Claiming: from queued to running, for as many jobs as there are free slots.

-- fragment: until when jobs are due
-- Now, or what the clock had reached before it went back: `Due` says what is sent.
(SELECT max(fencerow.now(), min(:due_us, fencerow.now() + 86400000000)))

-- fragment: written before the clock went back
-- Of what was written since, the clock alone says when it is due.
COALESCE(claimed_at, revived_at, submitted_at) NOT BETWEEN :since_us AND (SELECT fencerow.now())

-- fragment: due
-- A job is due now, or was before the clock went back.
run_at <= {{until when jobs are due}}
AND (run_at <= (SELECT fencerow.now())
     OR {{written before the clock went back}})

-- fragment: known here
-- Somebody who knows it could run it here, and it has not expired.
queued.name IN (SELECT value FROM json_each(:names))
AND (queued.expires_at IS NULL OR queued.expires_at > fencerow.now())

-- fragment: claimable
-- Due, known here, and not expired.
{{due}}
AND {{known here}}

-- fragment: may claim
-- The worker may be dead, the queue paused, or there is a limit on the queue, or on all queues (the one without a name),
-- which this claim knows nothing of.
EXISTS (SELECT 1 FROM fencerow.workers AS worker WHERE worker.id = :holder AND worker.state = 'alive')
AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                WHERE queue.name IN (:queue, '') AND (queue.paused_at IS NOT NULL OR (queue.limited AND :bounded = 0)))

-- fragment: is given
-- It waits at a place, and this transaction has found that it may go (:given). Anybody who knows it may take it.
state = 'waiting'
AND {{where it waits}} IS NOT NULL
AND id IN (SELECT value FROM json_each(:given))
AND queue = :queue
AND lane = ''
AND name IN (SELECT value FROM json_each(:names))
AND (expires_at IS NULL OR expires_at > fencerow.now())

-- fragment: claimed job
-- What the worker gets of it, in the order of `Claimed`.
json_array(
    id, name, queue, attempt, priority, run_at, json(CASE WHEN suspect THEN 'true' ELSE 'false' END),
    failures, crashes, snoozes, attempts_max, snoozes_max, timeout_s, submitted_at,
    CASE WHEN args_bytes <= 65536 AND json_valid(args) THEN json(args) END,
    CASE WHEN json_valid(options) THEN json(options) END, CASE WHEN json_valid(tags) THEN json(tags) END,
    CASE WHEN json_valid(metadata) THEN json(metadata) END, CASE WHEN json_valid(headers) THEN json(headers) END{{told of a claimed job}},
    {{lane it came from}}
)

-- fragment: claim guard
-- The guard of a claim: nobody has claimed it.
(state = 'queued' AND json_array_length(:given) = 0
 OR {{is given}})
AND {{may claim}}

-- fragment: started
-- What a claim writes.
state = 'running',
{{where it waits}} = NULL,
attempt = attempt + 1,
holder = :holder,
claimed_at = (SELECT fencerow.now()),
deadline_at = (SELECT fencerow.now()) + CAST((timeout_s + :margin_s) * 1000000 AS INTEGER){{what a claim writes of a given job}}

-- name: claim
-- Take up to :limit due jobs of one queue, the lanes in the order given, each from its low-water mark and no more of it
-- than it says. A lane is a priority and a name: '' for anybody's jobs, `label:gpu`, `tenant:7`, and with `suspect:` before it
-- those of suspects. Whoever may not take from a lane does not name it.
-- The mark is only a hint; exclusivity is the file's one write lock and the state.
-- Guard: still queued, in the lane that was asked for, due, not expired, the queue not paused, and the claiming worker's
-- own row alive.
-- Beside them it takes those that are :given: they wait at a place, and the transaction of which this is a part has found that they
-- may go. That is one write of a job that would be queued for this claim otherwise.
-- Due is decided by the clock. One that went back behind what the worker has seen it reach leaves jobs due up to
-- :due_us, at most a day: those that were written before, which is all whose last writing does not lie between
-- :since_us and now.
-- A LIMIT can name no column here: it is the greatest of the lanes' numbers.
-- Each row is one JSON document; arguments beyond 64 KiB, or that are no JSON any more, are fetched at start.
-- What else is no JSON any more comes as null: one edited row must not keep a queue from being claimed.
UPDATE fencerow.jobs
SET {{started}}
WHERE id IN (
        SELECT of_lanes.id
        FROM (
            SELECT candidate.value AS id
            FROM json_each(:lanes) AS lane,
                 json_each((
                     SELECT json_group_array(id)
                     FROM (SELECT queued.id
                           FROM fencerow.jobs AS queued
                           WHERE queued.queue = :queue
                             AND queued.priority = json_extract(lane.value, '$[0]')
                             AND queued.lane = json_extract(lane.value, '$[1]')
                             AND queued.state = 'queued'
                             AND (queued.run_at, queued.id)
                                 > (json_extract(lane.value, '$[2]'), json_extract(lane.value, '$[3]'))
                             AND {{claimable}}
                           ORDER BY queued.run_at, queued.id
                           LIMIT (SELECT max(json_extract(most.value, '$[4]')) FROM json_each(:lanes) AS most))
                 )) AS candidate
            WHERE candidate.key < json_extract(lane.value, '$[4]')
            ORDER BY lane.key, candidate.key
            LIMIT :limit
        ) AS of_lanes
        UNION ALL
        SELECT value FROM json_each(:given)
    )
  AND {{claim guard}}
RETURNING {{claimed job}};

-- name: lock_suspects
-- Make this worker's claims of suspects take turns: the transaction has the file's one write lock already.
SELECT :holder IS NOT NULL;

-- name: count_suspects
-- How many suspects this worker runs. What the worker believes to run plays no part in it: it may have ended here already.
SELECT count(*)
FROM fencerow.jobs AS job
WHERE job.holder = :holder AND job.state = 'running' AND job.suspect = 1;

-- name: lanes
-- The lanes of one queue that hold jobs for a worker with these :names of lanes, each with the instant its first job is due;
-- all lanes in turn of a priority are one row, with the first job of them that is due, or else the
-- least instant. The priorities are found by a skip scan, and in each of them one index descent is made for each name. Of
-- lanes in turn those behind one another are looked at until one is due, :turns_max of them at most; where none of these is,
-- one behind them may be, so now is told.
-- Each row says whether a limit bounds the claims of this queue.
WITH RECURSIVE level (priority) AS (
    SELECT max(job.priority)
    FROM fencerow.jobs AS job
    WHERE job.queue = :queue AND job.state = 'queued'
    UNION ALL
    SELECT (SELECT max(job.priority)
            FROM fencerow.jobs AS job
            WHERE job.queue = :queue AND job.state = 'queued' AND job.priority < level.priority)
    FROM level
    WHERE level.priority IS NOT NULL
),
shared (priority, number, lane, run_at) AS (
    SELECT level.priority, 0, {{where the lanes in turn begin}}, NULL
    FROM level
    WHERE level.priority IS NOT NULL
    UNION ALL
    SELECT shared.priority, shared.number + 1, following.lane, following.run_at
    FROM shared
    JOIN fencerow.jobs AS following ON following.id = (
        SELECT job.id
        FROM fencerow.jobs AS job
        WHERE job.queue = :queue AND job.priority = shared.priority AND job.state = 'queued'
          AND job.lane > shared.lane AND job.lane < {{where the lanes in turn end}}
        ORDER BY job.lane, job.run_at
        LIMIT 1)
    WHERE shared.number < :turns_max
      AND (shared.run_at IS NULL OR shared.run_at > fencerow.now())
)
SELECT first.priority, first.lane, first.run_at, fencerow.now(), {{limited}}
FROM (SELECT level.priority, named.value AS lane,
             (SELECT job.run_at
              FROM fencerow.jobs AS job
              WHERE job.queue = :queue AND job.priority = level.priority AND job.lane = named.value AND job.state = 'queued'
              ORDER BY job.run_at
              LIMIT 1) AS run_at
      FROM level
      CROSS JOIN json_each(:names) AS named
      WHERE level.priority IS NOT NULL) AS first
WHERE first.run_at IS NOT NULL
UNION ALL
SELECT shared.priority, {{where the lanes in turn begin}}, CASE WHEN max(shared.number) < :turns_max THEN min(shared.run_at) ELSE fencerow.now() END,
       fencerow.now(), {{limited}}
FROM shared
WHERE shared.number > 0
GROUP BY shared.priority;

-- fragment: in these lanes
-- In one of the lanes that are :open to the worker, or in a lane in turn, which is open to anybody.
(job.lane IN (SELECT value FROM json_each(:open)) OR (job.lane >= {{where the lanes in turn begin}} AND job.lane < {{where the lanes in turn end}}))

-- name: any_due
-- Whether a job of these queues and names is due that a worker with these lanes could claim.
SELECT EXISTS (
    SELECT 1
    FROM fencerow.jobs AS job
    WHERE job.queue IN (SELECT value FROM json_each(:queues))
      AND job.name IN (SELECT value FROM json_each(:names))
      AND job.state = 'queued'
      AND {{in these lanes}}
      AND job.run_at <= (SELECT fencerow.now())
      AND (job.expires_at IS NULL OR job.expires_at > (SELECT fencerow.now()))
      AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                      WHERE queue.name = job.queue AND queue.paused_at IS NOT NULL)
);

-- name: fetch_args
-- The arguments of one running attempt, as they were submitted.
-- Guard: the fence; a stale attempt is told that it lost.
SELECT job.args
FROM fencerow.jobs AS job
WHERE {{fence}};
