-- Shares: each share that has jobs in a queue and priority has a lane of its own there, `share:` and its name, and the shares
-- take turns. Jobs without a share are one more, and have the weight of the share without a name.

-- at: where the lanes in turn begin
'share:'

-- at: where the lanes in turn end
'share;'

-- at: weights of lanes in turn
LEFT JOIN fencerow.shares AS known
       ON known.queue = :queue AND known.share = CASE WHEN ring.number = 0 THEN '' ELSE substr(ring.lane, 7) END

-- at: told of a claimed job
share

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
