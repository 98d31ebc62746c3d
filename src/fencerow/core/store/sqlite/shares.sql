-- Shares: turns between those who share a lane of a queue. The ring of a lane are its shares that have jobs, in the order of
-- their names. Who had the last turn is known to each worker for itself and stored nowhere: a share that comes newly is in
-- the ring with its first job.

-- fragment: in the lane
-- It may be claimed from this lane of the queue, once it is due.
job.queue = :queue AND job.priority = :priority AND job.state = 'queued' AND job.suspect = 0 AND job.share IS NOT NULL

-- name: ring
-- The next :limit shares behind :after that have jobs, round to :until, where the way round began: a skip scan, one index
-- descent for each. Of each: its weight, whether the names have begun again, and whether its first job is due. And number -1 if
-- the first job of the whole lane that could be claimed has no share: those take turns then as well.
WITH RECURSIVE ring (number, share, run_at) AS (
    SELECT 0, :after, NULL
    UNION ALL
    SELECT ring.number + 1, following.share, following.run_at
    FROM ring
    JOIN fencerow.jobs AS following ON following.id = COALESCE(
        (SELECT job.id
         FROM fencerow.jobs AS job
         WHERE {{in the lane}}
           AND job.share > ring.share
           AND (ring.share > :until OR ring.number = 0 AND ring.share = :until OR job.share <= :until)
         ORDER BY job.share, job.run_at
         LIMIT 1),
        (SELECT job.id
         FROM fencerow.jobs AS job
         WHERE {{in the lane}}
           AND job.share <= :until
           AND (ring.share > :until OR ring.number = 0 AND ring.share = :until)
         ORDER BY job.share, job.run_at
         LIMIT 1))
    WHERE ring.number < :limit
)
SELECT ring.number, ring.share, COALESCE(known.weight, 1), ring.share <= :until,
       ring.run_at <= (SELECT max(fencerow.now(), min(:due_us, fencerow.now() + 86400000000)))
FROM ring
LEFT JOIN fencerow.shares AS known ON known.queue = :queue AND known.share = ring.share
WHERE ring.number > 0
UNION ALL
SELECT -1, '',
       COALESCE((SELECT known.weight FROM fencerow.shares AS known WHERE known.queue = :queue AND known.share = ''), 1), 0, 1
FROM (SELECT queued.share
      FROM fencerow.jobs AS queued
      WHERE queued.queue = :queue
        AND queued.priority = :priority
        AND queued.state = 'queued'
        AND queued.suspect = 0
        AND (queued.run_at, queued.id) > (:mark_us, :mark_id)
        AND {{claimable}}
      ORDER BY queued.run_at, queued.id
      LIMIT 1) AS head
WHERE head.share IS NULL
ORDER BY 1;

-- name: claim_in_turn
-- Take due jobs of one lane: of each share in :turns so many, and up to :nobodys without a share, of those that are among
-- the next :reach of the lane. Guards, and what is due, as in claim: whose turn it is excludes nobody, the state does.
-- A LIMIT can name no column here: it is the greatest of the numbers.
UPDATE fencerow.jobs
SET {{started}}
WHERE id IN (
        SELECT candidate.value
        FROM json_each(:turns) AS turn,
             json_each((
                 SELECT json_group_array(id)
                 FROM (SELECT queued.id
                       FROM fencerow.jobs AS queued
                       WHERE queued.queue = :queue
                         AND queued.priority = :priority
                         AND queued.share = json_extract(turn.value, '$[0]')
                         AND queued.share IS NOT NULL
                         AND queued.state = 'queued'
                         AND queued.suspect = 0
                         AND {{claimable}}
                       ORDER BY queued.run_at, queued.id
                       LIMIT (SELECT max(json_extract(most.value, '$[1]')) FROM json_each(:turns) AS most))
             )) AS candidate
        WHERE candidate.key < json_extract(turn.value, '$[1]')
        UNION ALL
        SELECT nobodys.id
        FROM (SELECT line.id
              FROM (SELECT queued.id, queued.share
                    FROM fencerow.jobs AS queued
                    WHERE queued.queue = :queue
                      AND queued.priority = :priority
                      AND queued.state = 'queued'
                      AND queued.suspect = 0
                      AND (queued.run_at, queued.id) > (:mark_us, :mark_id)
                      AND {{claimable}}
                    ORDER BY queued.run_at, queued.id
                    LIMIT :reach) AS line
              WHERE line.share IS NULL
              LIMIT :nobodys) AS nobodys
    )
  AND {{claim guard}}
RETURNING {{claimed job}};

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
