-- Claiming: from queued to running, for as many jobs as there are free slots.

-- fragment: due
-- A job is due now, or was before the clock went back: `Due` says what is sent.
run_at <= (SELECT max(fencerow.now(), min(:due_us, fencerow.now() + 86400000000)))
AND (run_at <= (SELECT fencerow.now())
     OR COALESCE(claimed_at, revived_at, submitted_at)
        NOT BETWEEN :since_us AND (SELECT fencerow.now()))

-- fragment: claimable
-- Due, known here, and not expired.
{{due}}
AND queued.name IN (SELECT value FROM json_each(:names))
AND (queued.expires_at IS NULL OR queued.expires_at > fencerow.now())

-- fragment: may claim
-- The worker may be dead, the queue paused, or there is a limit on the queue, or on all queues (the one without a name),
-- which this claim knows nothing of.
EXISTS (SELECT 1 FROM fencerow.workers AS worker WHERE worker.id = :holder AND worker.state = 'alive')
AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                WHERE queue.name IN (:queue, '') AND (queue.paused_at IS NOT NULL OR (queue.limited AND :bounded = 0)))

-- fragment: claim guard
-- The guard of a claim: nobody has claimed it.
state = 'queued'
AND {{may claim}}

-- fragment: claimed job
-- What the worker gets of it, in the order of `Claimed`.
json_array(
    id, name, queue, attempt, priority, run_at, json(CASE WHEN suspect THEN 'true' ELSE 'false' END),
    failures, crashes, snoozes, attempts_max, snoozes_max, timeout_s, submitted_at,
    CASE WHEN args_bytes <= 65536 AND json_valid(args) THEN json(args) END,
    CASE WHEN json_valid(options) THEN json(options) END, CASE WHEN json_valid(tags) THEN json(tags) END,
    CASE WHEN json_valid(metadata) THEN json(metadata) END, CASE WHEN json_valid(headers) THEN json(headers) END, share
)

-- fragment: claimed beside the others
-- As `claimed job`, and last the label for which it waited.
json_insert({{claimed job}}, '$[#]', affinity)

-- fragment: started
-- What a claim writes.
state = 'running',
attempt = attempt + 1,
holder = :holder,
claimed_at = (SELECT fencerow.now()),
deadline_at = (SELECT fencerow.now()) + CAST((timeout_s + :margin_s) * 1000000 AS INTEGER)

-- name: claim
-- Take up to :limit due jobs of one queue, the lanes (priorities) in the order given, each from its low-water mark.
-- The mark is only a hint; exclusivity is the file's one write lock and the state.
-- Guard: still queued, due, not expired, the queue not paused, and the claiming worker's own row alive.
-- Due is decided by the clock. One that went back behind what the worker has seen it reach leaves jobs due up to
-- :due_us, at most a day: those that were written before, which is all whose last writing does not lie between
-- :since_us and now.
-- Each row is one JSON document; arguments beyond 64 KiB, or that are no JSON any more, are fetched at start.
-- What else is no JSON any more comes as null: one edited row must not keep a queue from being claimed.
UPDATE fencerow.jobs
SET {{started}}
WHERE id IN (
        SELECT candidate.value
        FROM json_each(:lanes) AS lane,
             json_each((
                 SELECT json_group_array(id)
                 FROM (SELECT queued.id
                       FROM fencerow.jobs AS queued
                       WHERE queued.queue = :queue
                         AND queued.priority = json_extract(lane.value, '$[0]')
                         AND queued.state = 'queued'
                         AND queued.suspect = 0
                         AND (queued.run_at, queued.id)
                             > (json_extract(lane.value, '$[1]'), json_extract(lane.value, '$[2]'))
                         AND {{claimable}}
                       ORDER BY queued.run_at, queued.id
                       LIMIT :limit)
             )) AS candidate
        ORDER BY lane.key, candidate.key
        LIMIT :limit
    )
  AND {{claim guard}}
RETURNING {{claimed job}};

-- name: lock_suspects
-- Make this worker's claims of suspects take turns: the transaction has the file's one write lock already.
SELECT :holder IS NOT NULL;

-- fragment: suspects left
-- How many suspects may be claimed: the worker runs :at_most at once, and no more than :limit are let through now. What the
-- worker believes to run plays no part in the latter: it may have ended here already.
max(0, min(:limit, :at_most - (SELECT count(*) FROM fencerow.jobs AS other
                               WHERE other.holder = :holder AND other.state = 'running' AND other.suspect = 1)))

-- name: claim_suspect
-- Take up to :limit suspect jobs of a queue, those that are due first, until this worker runs :at_most of them. Guards as
-- in claim.
UPDATE fencerow.jobs
SET {{started}}
WHERE id IN (
        SELECT queued.id
        FROM fencerow.jobs AS queued
        WHERE queued.queue = :queue
          AND queued.state = 'queued'
          AND queued.suspect = 1
          AND {{claimable}}
        ORDER BY queued.run_at, queued.id
        LIMIT {{suspects left}}
    )
  AND {{claim guard}}
RETURNING {{claimed job}};

-- fragment: limited
-- Whether a limit bounds the claims of this queue, or of all.
(SELECT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name IN (:queue, '') AND queue.limited))

-- name: lanes
-- The lanes of one queue that hold queued jobs, highest priority first, each with the instant its first job is due,
-- and last, with no priority, the first suspect: a skip scan, one index descent per lane. Each says whether a limit
-- bounds the claims of this queue, and whether shares have jobs in the lane.
WITH RECURSIVE lane (priority) AS (
    SELECT max(job.priority)
    FROM fencerow.jobs AS job
    WHERE job.queue = :queue AND job.state = 'queued' AND job.suspect = 0
    UNION ALL
    SELECT (SELECT max(job.priority)
            FROM fencerow.jobs AS job
            WHERE job.queue = :queue AND job.state = 'queued' AND job.suspect = 0 AND job.priority < lane.priority)
    FROM lane
    WHERE lane.priority IS NOT NULL
)
SELECT lane.priority,
       (SELECT job.run_at
        FROM fencerow.jobs AS job
        WHERE job.queue = :queue AND job.state = 'queued' AND job.suspect = 0 AND job.priority = lane.priority
        ORDER BY job.run_at
        LIMIT 1),
       fencerow.now(), {{limited}},
       (SELECT EXISTS (SELECT 1 FROM fencerow.jobs AS shared
                       WHERE shared.queue = :queue AND shared.priority = lane.priority AND shared.state = 'queued'
                         AND shared.suspect = 0 AND shared.share IS NOT NULL))
FROM lane
WHERE lane.priority IS NOT NULL
UNION ALL
SELECT NULL, first.run_at, fencerow.now(), {{limited}}, 0
FROM (SELECT job.run_at
      FROM fencerow.jobs AS job
      WHERE job.queue = :queue AND job.state = 'queued' AND job.suspect = 1
      ORDER BY job.run_at
      LIMIT 1) AS first;

-- name: any_due
-- Whether a job of these queues and names is due that a worker could claim.
SELECT EXISTS (
    SELECT 1
    FROM fencerow.jobs AS job
    WHERE job.queue IN (SELECT value FROM json_each(:queues))
      AND job.name IN (SELECT value FROM json_each(:names))
      AND job.state = 'queued'
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
