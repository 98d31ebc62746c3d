-- Shares: turns between those who share a lane of a queue. The ring of a lane are its shares that have jobs, in the order of
-- their names. Who had the last turn is known to each worker for itself and stored nowhere: a share that comes newly is in
-- the ring with its first job.

-- fragment: in the lane
-- It may be claimed from this lane of the queue, once it is due.
job.queue = :queue AND job.priority = CAST(:priority AS smallint) AND job.state = 'queued' AND NOT job.suspect

-- name: ring
-- The next :limit shares behind :after that have jobs, round to :until, where the way round began: a skip scan, one index
-- descent for each. Of each: its weight, whether the names have begun again, and whether its first job is due. And number -1 if
-- the first job of the whole lane that could be claimed has no share: those take turns then as well.
WITH RECURSIVE ring (number, share, run_at) AS (
    SELECT 0, CAST(:after AS text), CAST(NULL AS timestamptz)
    UNION ALL
    SELECT ring.number + 1, following.share, following.run_at
    FROM ring
    CROSS JOIN LATERAL (
        (SELECT job.share, job.run_at
         FROM fencerow.jobs AS job
         WHERE {{in the lane}}
           AND job.share > ring.share
           AND (ring.share > :until OR ring.number = 0 AND ring.share = :until OR job.share <= :until)
         ORDER BY job.share, job.run_at
         LIMIT 1)
        UNION ALL
        (SELECT job.share, job.run_at
         FROM fencerow.jobs AS job
         WHERE {{in the lane}}
           AND job.share <= :until
           AND (ring.share > :until OR ring.number = 0 AND ring.share = :until)
         ORDER BY job.share, job.run_at
         LIMIT 1)
        LIMIT 1
    ) AS following
    WHERE ring.number < CAST(:limit AS integer)
)
SELECT ring.number, ring.share, COALESCE(known.weight, 1), ring.share <= :until,
       ring.run_at <= (SELECT greatest(fencerow.now(), least(fencerow.at(CAST(:due_us AS bigint)),
                                                             fencerow.now() + INTERVAL '1 day')))
FROM ring
LEFT JOIN fencerow.shares AS known ON known.queue = :queue AND known.share = ring.share
WHERE ring.number > 0
UNION ALL
SELECT -1, '',
       COALESCE((SELECT known.weight FROM fencerow.shares AS known WHERE known.queue = :queue AND known.share = ''), 1),
       false, true
FROM (SELECT queued.share
      FROM fencerow.jobs AS queued
      WHERE queued.queue = :queue
        AND queued.priority = CAST(:priority AS smallint)
        AND queued.state = 'queued'
        AND NOT queued.suspect
        AND (queued.run_at, queued.id) > (fencerow.at(CAST(:mark_us AS bigint)), CAST(:mark_id AS uuid))
        AND {{claimable}}
      ORDER BY queued.run_at, queued.id
      LIMIT 1) AS head
WHERE head.share IS NULL
ORDER BY 1;

-- name: claim_in_turn
-- Take due jobs of one lane: of each share in :turns so many, and up to :nobodys without a share, of those that are among
-- the next :reach of the lane. Guards, and what is due, as in claim: whose turn it is excludes nobody, the state does.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
claimed AS (
    UPDATE fencerow.jobs AS job
    SET {{started}}
    FROM clock
    WHERE job.id = ANY(ARRAY(
            SELECT candidate.id
            FROM json_array_elements(CAST(:turns AS json)) AS turn (given)
            CROSS JOIN LATERAL (
                SELECT queued.id
                FROM fencerow.jobs AS queued
                WHERE queued.queue = :queue
                  AND queued.priority = CAST(:priority AS smallint)
                  AND queued.share = turn.given ->> 0
                  AND queued.state = 'queued'
                  AND NOT queued.suspect
                  AND {{claimable}}
                ORDER BY queued.run_at, queued.id
                LIMIT CAST(turn.given ->> 1 AS integer)
                FOR UPDATE SKIP LOCKED
            ) AS candidate
            UNION ALL
            SELECT nobodys.id
            FROM (
                SELECT queued.id
                FROM fencerow.jobs AS queued
                WHERE queued.id = ANY(ARRAY(
                        SELECT line.id
                        FROM (SELECT queued.id, queued.share
                              FROM fencerow.jobs AS queued
                              WHERE queued.queue = :queue
                                AND queued.priority = CAST(:priority AS smallint)
                                AND queued.state = 'queued'
                                AND NOT queued.suspect
                                AND (queued.run_at, queued.id)
                                    > (fencerow.at(CAST(:mark_us AS bigint)), CAST(:mark_id AS uuid))
                                AND {{claimable}}
                              ORDER BY queued.run_at, queued.id
                              LIMIT CAST(:reach AS integer)) AS line
                        WHERE line.share IS NULL
                        LIMIT CAST(:nobodys AS integer)
                    ))
                  AND queued.state = 'queued'
                FOR UPDATE SKIP LOCKED
            ) AS nobodys
        ))
      AND {{claim guard}}
    {{claimed jobs}};

-- name: weigh_share
-- Say how many turns a share has one after another. Guard: only another weight is written.
INSERT INTO fencerow.shares AS known (queue, share, weight, set_at, set_by)
VALUES (:queue, :share, CAST(:weight AS integer), (SELECT fencerow.now()), CAST(:actor AS text))
ON CONFLICT (queue, share) DO UPDATE
SET weight = EXCLUDED.weight, set_at = EXCLUDED.set_at, set_by = EXCLUDED.set_by
WHERE known.weight <> EXCLUDED.weight
RETURNING known.weight;

-- name: forget_weight
-- Let a share have one turn at a time again, as it had before anybody said something.
DELETE FROM fencerow.shares AS known
WHERE known.queue = :queue AND known.share = :share
RETURNING known.weight;

-- name: read_shares
-- The shares that have jobs in their queues or in the work, and those that have a weight of their own; in the order of
-- `ShareRecord`. NULL for the queue: all of them.
SELECT COALESCE(seen.queue, known.queue), COALESCE(seen.share, known.share), COALESCE(known.weight, 1),
       COALESCE(seen.queued, 0), COALESCE(seen.running, 0), fencerow.us(seen.first), fencerow.us(known.set_at), known.set_by,
       fencerow.us(fencerow.now())
FROM (SELECT job.queue, job.share, count(*) FILTER (WHERE job.state = 'queued') AS queued,
             count(*) FILTER (WHERE job.state = 'running') AS running,
             min(job.run_at) FILTER (WHERE job.state = 'queued') AS first
      FROM fencerow.jobs AS job
      WHERE job.share IS NOT NULL AND job.state IN ('queued', 'running')
        AND (CAST(:queue AS text) IS NULL OR job.queue = :queue)
      GROUP BY job.queue, job.share) AS seen
FULL JOIN (SELECT * FROM fencerow.shares AS given WHERE CAST(:queue AS text) IS NULL OR given.queue = :queue) AS known
       ON known.queue = seen.queue AND known.share = seen.share
ORDER BY 1, 2;
