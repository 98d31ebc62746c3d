-- Shares: each share that has jobs in a queue and priority has a lane of its own there, `share:` and its name, and the shares
-- take turns. The ring of a priority are these lanes, in the order of their names. Who had the last turn is known to each
-- worker for itself and stored nowhere: a share that comes newly is in the ring with its first job.

-- fragment: lane of a share
-- It is queued in the lane of a share, and not as a suspect: those take no turns.
job.queue = :queue AND job.priority = :priority AND job.state = 'queued' AND job.lane > 'share:' AND job.lane < 'share;'

-- name: ring
-- The lanes of shares behind :after, round to :until, where the way round began, until :limit of them have a due job, or as
-- many as :steps are behind: a skip scan, one index descent for each. Of each: the name of the lane, the weight of the share,
-- whether the names have begun again, when its first job is due, and whether it is. Row 0 has the weight of the jobs without a
-- share.
WITH RECURSIVE ring (number, lane, run_at, due, found) AS (
    SELECT 0, :after, NULL, 0, 0
    UNION ALL
    SELECT ring.number + 1, following.lane, following.run_at,
           following.run_at <= max(fencerow.now(), min(:due_us, fencerow.now() + 86400000000)),
           ring.found + (following.run_at <= max(fencerow.now(), min(:due_us, fencerow.now() + 86400000000)))
    FROM ring
    JOIN fencerow.jobs AS following ON following.id = COALESCE(
        (SELECT job.id
         FROM fencerow.jobs AS job
         WHERE {{lane of a share}}
           AND job.lane > ring.lane
           AND (ring.lane > :until OR ring.number = 0 AND ring.lane = :until OR job.lane <= :until)
         ORDER BY job.lane, job.run_at
         LIMIT 1),
        (SELECT job.id
         FROM fencerow.jobs AS job
         WHERE {{lane of a share}}
           AND job.lane <= :until
           AND (ring.lane > :until OR ring.number = 0 AND ring.lane = :until)
         ORDER BY job.lane, job.run_at
         LIMIT 1))
    WHERE ring.found < :limit
      AND ring.number < :steps
)
SELECT ring.number, ring.lane, COALESCE(known.weight, 1), ring.lane <= :until, ring.run_at, ring.due
FROM ring
LEFT JOIN fencerow.shares AS known
       ON known.queue = :queue AND known.share = CASE WHEN ring.number = 0 THEN '' ELSE substr(ring.lane, 7) END
ORDER BY ring.number;

-- name: weigh_share
-- Say how many turns a share has one after another. Guard: only another weight is written.
INSERT INTO fencerow.shares (queue, share, weight, set_at, set_by)
VALUES (:queue, :share, :weight, fencerow.now(), :actor)
ON CONFLICT (queue, share) DO UPDATE
SET weight = excluded.weight, set_at = excluded.set_at, set_by = excluded.set_by
WHERE weight <> excluded.weight
RETURNING weight;

-- name: forget_weight
-- Let a share have one turn at a time again, as it had before anybody said something.
DELETE FROM fencerow.shares
WHERE queue = :queue AND share = :share
RETURNING COALESCE(weight, 1);

-- name: read_shares
-- The shares that have jobs in their queues or in the work, and those that have a weight of their own; in the order of
-- `ShareRecord`. NULL for the queue: all of them.
SELECT every.queue, every.share, COALESCE(max(every.weight), 1), sum(every.queued), sum(every.running), min(every.first),
       max(every.set_at), max(every.set_by), fencerow.now()
FROM (SELECT job.queue, job.share, NULL AS weight, count(*) FILTER (WHERE job.state = 'queued') AS queued,
             count(*) FILTER (WHERE job.state = 'running') AS running,
             min(job.run_at) FILTER (WHERE job.state = 'queued') AS first, NULL AS set_at, NULL AS set_by
      FROM fencerow.jobs AS job
      WHERE job.share IS NOT NULL AND job.state IN ('queued', 'running')
      GROUP BY job.queue, job.share
      UNION ALL
      SELECT known.queue, known.share, known.weight, 0, 0, NULL, known.set_at, known.set_by
      FROM fencerow.shares AS known) AS every
WHERE :queue IS NULL OR every.queue = :queue
GROUP BY every.queue, every.share
ORDER BY every.queue, every.share;
