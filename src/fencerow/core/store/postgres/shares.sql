-- Shares: each share that has jobs in a queue and priority has a lane of its own there, `share:` and its name, and the shares
-- take turns. The ring of a priority are these lanes, in the order of their names. Who had the last turn is known to each
-- worker for itself and stored nowhere: a share that comes newly is in the ring with its first job.

-- fragment: lane of a share
-- It is queued in the lane of a share, and not as a suspect: those take no turns.
job.queue = :queue AND job.priority = CAST(:priority AS smallint) AND job.state = 'queued'
AND job.lane > 'share:' AND job.lane < 'share;'

-- name: ring
-- The lanes of shares behind :after, round to :until, where the way round began, until :limit of them have a due job, or as
-- many as :steps are behind: a skip scan, one index descent for each. Of each: the name of the lane, the weight of the share,
-- whether the names have begun again, when its first job is due, and whether it is. Row 0 has the weight of the jobs without a
-- share.
WITH RECURSIVE ring (number, lane, run_at, due, found) AS (
    SELECT 0, CAST(:after AS text) COLLATE "C", CAST(NULL AS timestamptz), false, 0
    UNION ALL
    SELECT ring.number + 1, following.lane, following.run_at, following.due, ring.found + CAST(following.due AS integer)
    FROM ring
    CROSS JOIN LATERAL (
        SELECT next.lane, next.run_at,
               next.run_at <= (SELECT greatest(fencerow.now(), least(fencerow.at(CAST(:due_us AS bigint)),
                                                                     fencerow.now() + INTERVAL '1 day'))) AS due
        FROM ((SELECT job.lane, job.run_at
               FROM fencerow.jobs AS job
               WHERE {{lane of a share}}
                 AND job.lane > ring.lane
                 AND (ring.lane > :until OR ring.number = 0 AND ring.lane = :until OR job.lane <= :until)
               ORDER BY job.lane, job.run_at
               LIMIT 1)
              UNION ALL
              (SELECT job.lane, job.run_at
               FROM fencerow.jobs AS job
               WHERE {{lane of a share}}
                 AND job.lane <= :until
                 AND (ring.lane > :until OR ring.number = 0 AND ring.lane = :until)
               ORDER BY job.lane, job.run_at
               LIMIT 1)
              LIMIT 1) AS next
    ) AS following
    WHERE ring.found < CAST(:limit AS integer)
      AND ring.number < CAST(:steps AS integer)
)
SELECT ring.number, ring.lane, COALESCE(known.weight, 1), ring.lane <= :until, fencerow.us(ring.run_at), ring.due
FROM ring
LEFT JOIN fencerow.shares AS known
       ON known.queue = :queue AND known.share = CASE WHEN ring.number = 0 THEN '' ELSE substr(ring.lane, 7) END
ORDER BY ring.number;

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
