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
