-- Claiming: from queued to running, for as many jobs as there are free slots.

-- fragment: until when jobs are due
-- Now, or what the clock had reached before it went back: `Due` says what is sent.
(SELECT greatest(fencerow.now(), least(fencerow.at(CAST(:due_us AS bigint)), fencerow.now() + INTERVAL '1 day')))

-- fragment: written before the clock went back
-- Of what was written since, the clock alone says when it is due.
COALESCE(claimed_at, revived_at, submitted_at) NOT BETWEEN fencerow.at(CAST(:since_us AS bigint)) AND (SELECT fencerow.now())

-- fragment: due
-- A job is due now, or was before the clock went back.
run_at <= {{until when jobs are due}}
AND (run_at <= (SELECT fencerow.now())
     OR {{written before the clock went back}})

-- fragment: known here
-- Somebody who knows it could run it here, and it has not expired.
queued.name = ANY(CAST(:names AS text[]))
AND (queued.expires_at IS NULL OR queued.expires_at > (SELECT fencerow.now()))

-- fragment: claimable
-- Due, known here, and not expired.
{{due}}
AND {{known here}}

-- fragment: may claim
-- The worker may be dead, the queue paused, or there is a limit on the queue, or on all queues (the one without a name),
-- which this claim knows nothing of. FOR KEY SHARE is for the lock of the table, which a statement takes before its
-- snapshot, whatever rows it finds: who bounds a queue for the first time waits until claims under way have ended.
EXISTS (SELECT 1 FROM fencerow.workers AS worker
            WHERE worker.id = CAST(:holder AS uuid) AND worker.state = 'alive')
AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                WHERE queue.name IN (:queue, '')
                  AND (queue.paused_at IS NOT NULL OR (queue.limited AND CAST(:bounded AS integer) = 0))
                FOR KEY SHARE)

-- fragment: is given
-- It waits at a place where this transaction has locked all that decides who may go, and has found that it may (:given; what a lane
-- brings waits nowhere). Anybody who knows it may take it. Its id is not looked for among them again: the server would compare each
-- with all, twice, which was a fifth of such a claim.
cardinality(CAST(:given AS uuid[])) > 0
AND job.state IS NOT DISTINCT FROM 'waiting'
AND job.{{where it waits}} IS NOT NULL
AND job.queue = :queue
AND fencerow.lane(job) = ''
AND job.name = ANY(CAST(:names AS text[]))
AND COALESCE(job.expires_at > clock.now, true)

-- fragment: claim guard
-- The guard of a claim: whoever locked the row first may have claimed it. The row is found by its id: a plain
-- `state = 'queued'` would let the planner walk the lanes for it, all of them, when it believes that they are nearly empty.
(job.state IS NOT DISTINCT FROM 'queued' AND cardinality(CAST(:given AS uuid[])) = 0
 OR {{is given}})
AND {{may claim}}

-- fragment: started
-- What a claim writes.
state = 'running',
{{where it waits}} = NULL,
attempt = job.attempt + 1,
holder = CAST(:holder AS uuid),
claimed_at = clock.now,
deadline_at = clock.now + fencerow.seconds(job.timeout_s + CAST(:margin_s AS double precision)){{what a claim writes of a given job}}

-- fragment: budgets of an attempt
-- Those of its budgets that a worker must know.
attempts_max, snoozes_max, timeout_s

-- fragment: claimed jobs
-- The end of a claim, whose UPDATE is `claimed`: the jobs as one JSON document. Arguments beyond 64 KiB, or beyond 8 MiB in
-- all, are fetched at start.
RETURNING job.id, job.name, job.queue, job.attempt, job.priority, job.run_at, job.suspect, job.failures, job.crashes,
              job.snoozes, {{job.budgets of an attempt}}, job.submitted_at, job.args_bytes, job.args,
              job.options, job.tags, job.metadata, job.headers{{job.told of a claimed job}}, {{lane it came from}} AS lane
)
SELECT CAST(json_agg(json_build_array(
           id, name, queue, attempt, priority, fencerow.us(run_at), suspect, failures, crashes, snoozes,
           {{budgets of an attempt}}, fencerow.us(submitted_at),
           CASE WHEN args_bytes <= 65536 AND bytes_so_far <= 8388608 THEN args END,
           options, tags, metadata, headers{{told of a claimed job}}, lane
       ) ORDER BY priority DESC, run_at, id) AS text)
FROM (SELECT claimed.*, sum(args_bytes) OVER (ORDER BY priority DESC, run_at, id) AS bytes_so_far FROM claimed) AS sized

-- name: claim
-- Take up to :limit due jobs of one queue, the lanes in the order given, each from its low-water mark and no more of it
-- than it says. A lane is a priority and a name: '' for anybody's jobs, `label:gpu`, `tenant:7`, and with `suspect:` before it
-- those of suspects. Whoever may not take from a lane does not name it.
-- The mark is only a hint that spares the dead entries at the lane's head; exclusivity is the row lock and the state.
-- Guard: still queued, in the lane that was asked for, due, not expired, the queue not paused, and the claiming worker's
-- own row alive.
-- Beside them it takes those that are :given: they wait at a place, and the transaction of which this is a part has found that they
-- may go. That is one write of a job that would be queued for this claim otherwise.
-- Due is decided by the clock. One that went back behind what the worker has seen it reach leaves jobs due up to
-- :due_us, at most a day: those that were written before, which is all whose last writing does not lie between
-- :since_us and now.
-- Never IN (SELECT ... LIMIT): under a nested loop it claims more than the limit. The ARRAY is evaluated once.
-- The rows come back as one JSON document; arguments beyond 64 KiB, or beyond 8 MiB in all, are fetched at start.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
claimed AS (
    UPDATE fencerow.jobs AS job
    SET {{started}}
    FROM clock
    WHERE job.id = ANY(ARRAY(
            SELECT candidate.id
            FROM json_array_elements(CAST(:lanes AS json)) WITH ORDINALITY AS lane (mark, position)
            CROSS JOIN LATERAL (
                SELECT queued.id
                FROM fencerow.jobs AS queued
                WHERE queued.queue = :queue
                  AND queued.priority = CAST(lane.mark ->> 0 AS smallint)
                  AND fencerow.lane(queued) = lane.mark ->> 1
                  AND queued.state = 'queued'
                  AND (queued.run_at, queued.id)
                      > (fencerow.at(CAST(lane.mark ->> 2 AS bigint)), CAST(lane.mark ->> 3 AS uuid))
                  AND {{claimable}}
                ORDER BY queued.run_at, queued.id
                LIMIT CAST(lane.mark ->> 4 AS integer)
                FOR UPDATE SKIP LOCKED
            ) AS candidate
            LIMIT CAST(:limit AS integer)
        ) || CAST(:given AS uuid[]))
      AND {{claim guard}}
    {{claimed jobs}};

-- name: wait_for_locks
-- How long this transaction waits for a lock, at most.
SELECT set_config('lock_timeout', CAST(:wait_ms AS text), true);

-- name: lock_passed_over
-- Lock the job that is due first in a lane, also if somebody has its row locked: this waits for it, as long as the
-- transaction may, and the claim that follows takes it. All claims pass such a row over, so one that submits lock again
-- and again would be started by luck. Who waits is served before those who come later. With :locked_only what nobody has
-- locked is left.
-- Guard: none is needed, the claim has its own, and reads the clock after the wait. What the last submit says may be due
-- later, or be in another lane: then it is left alone.
WITH head AS MATERIALIZED (
    SELECT queued.id
    FROM fencerow.jobs AS queued
    WHERE queued.queue = :queue
      AND queued.priority = CAST(:priority AS smallint)
      AND fencerow.lane(queued) = :lane
      AND queued.state = 'queued'
      AND {{claimable}}
    ORDER BY queued.run_at, queued.id
    LIMIT 1
),
free AS MATERIALIZED (
    SELECT queued.id FROM fencerow.jobs AS queued WHERE queued.id = (SELECT head.id FROM head) FOR UPDATE SKIP LOCKED
)
SELECT fencerow.us(queued.run_at)
FROM fencerow.jobs AS queued
WHERE queued.id = (SELECT head.id FROM head)
  AND (CAST(:locked_only AS integer) = 0 OR NOT EXISTS (SELECT 1 FROM free))
  AND fencerow.lane(queued) = :lane
  AND queued.state = 'queued'
  AND {{claimable}}
FOR UPDATE;

-- name: lock_suspects
-- Make this worker's claims of suspects take turns, until the transaction ends; false while another is under way.
-- A statement of its own, before the one that looks: two that look at once would each count the same.
-- It is tried, and is no lock on the worker's row: a transaction whose client has gone must not stop the renewals.
SELECT pg_try_advisory_xact_lock(hashtextextended(CAST(CAST(:holder AS uuid) AS text), 7300));

-- name: count_suspects
-- How many suspects this worker runs. A statement of its own, under the lock: no other claim of it can add to them. What the
-- worker believes to run plays no part in it: it may have ended here already.
SELECT count(*)
FROM fencerow.jobs AS job
WHERE job.holder = CAST(:holder AS uuid) AND job.state = 'running' AND job.suspect;

-- name: lanes
-- The lanes of one queue that hold jobs for a worker with these :names of lanes, each with the instant its first job is due;
-- all lanes in turn of a priority are one row, with the first job of them that is due, or else the
-- least instant. The priorities are found by a skip scan, and in each of them one index descent is made for each name. Of
-- lanes in turn those behind one another are looked at until one is due, :turns_max of them at most; where none of these is,
-- one behind them may be, so now is told.
-- Each row says whether a limit bounds the claims of this queue.
WITH RECURSIVE level AS (
    (SELECT job.priority
     FROM fencerow.jobs AS job
     WHERE job.queue = :queue AND job.state = 'queued'
     ORDER BY job.priority DESC
     LIMIT 1)
    UNION ALL
    SELECT below.priority
    FROM level
    CROSS JOIN LATERAL (
        SELECT job.priority
        FROM fencerow.jobs AS job
        WHERE job.queue = :queue AND job.state = 'queued' AND job.priority < level.priority
        ORDER BY job.priority DESC
        LIMIT 1
    ) AS below
),
shared AS (
    SELECT level.priority, 0 AS number, CAST({{where the lanes in turn begin}} AS text) COLLATE "C" AS lane, CAST(NULL AS timestamptz) AS run_at
    FROM level
    UNION ALL
    SELECT shared.priority, shared.number + 1, following.lane, following.run_at
    FROM shared
    CROSS JOIN LATERAL (
        SELECT fencerow.lane(job), job.run_at
        FROM fencerow.jobs AS job
        WHERE job.queue = :queue AND job.priority = shared.priority AND job.state = 'queued'
          AND fencerow.lane(job) > shared.lane AND fencerow.lane(job) < {{where the lanes in turn end}}
        ORDER BY fencerow.lane(job), job.run_at
        LIMIT 1
    ) AS following
    WHERE shared.number < CAST(:turns_max AS integer)
      AND COALESCE(shared.run_at > (SELECT fencerow.now()), true)
)
SELECT level.priority, named.lane, fencerow.us(first.run_at), fencerow.us(fencerow.now()), {{limited}}
FROM level
CROSS JOIN unnest(CAST(:names AS text[])) AS named (lane)
CROSS JOIN LATERAL (
    SELECT job.run_at
    FROM fencerow.jobs AS job
    WHERE job.queue = :queue AND job.priority = level.priority AND fencerow.lane(job) = named.lane AND job.state = 'queued'
    ORDER BY job.run_at
    LIMIT 1
) AS first
UNION ALL
SELECT shared.priority, {{where the lanes in turn begin}},
       CASE WHEN max(shared.number) < CAST(:turns_max AS integer) THEN fencerow.us(min(shared.run_at))
            ELSE fencerow.us(fencerow.now()) END,
       fencerow.us(fencerow.now()), {{limited}}
FROM shared
WHERE shared.number > 0
GROUP BY shared.priority;

-- fragment: in these lanes
-- In one of the lanes that are :open to the worker, or in a lane in turn, which is open to anybody.
(fencerow.lane(job) = ANY(CAST(:open AS text[])) OR (fencerow.lane(job) >= {{where the lanes in turn begin}} AND fencerow.lane(job) < {{where the lanes in turn end}}))

-- name: any_due
-- Whether a job of these queues and names is due that a worker with these lanes could claim, also while somebody locks its row for an
-- instant: a claim skips that, so an empty claim does not tell that nothing is left.
SELECT EXISTS (
    SELECT 1
    FROM fencerow.jobs AS job
    WHERE job.queue = ANY(CAST(:queues AS text[]))
      AND job.name = ANY(CAST(:names AS text[]))
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
SELECT CAST(job.args AS text)
FROM fencerow.jobs AS job
WHERE {{fence}};
