-- Lanes in turn: each lane whose name a wing says so takes turns with the others of its queue and priority. The ring are these
-- lanes, in the order of their names. Who had the last turn is known to each worker for itself and stored nowhere: a lane
-- that comes newly is in the ring with its first job.

-- fragment: ends
-- Where the part of the ring that is walked ends: the names have not begun again yet, or they have.
CASE WHEN ring.lane > :until OR ring.number = 0 AND ring.lane = :until THEN {{where the lanes in turn end}} ELSE :until END

-- fragment: in turn
-- It is queued in such a lane, not as a suspect (those take no turns), and could be claimed here once it is due.
queued.queue = :queue AND queued.priority = :priority AND queued.state = 'queued'
AND queued.lane > {{where the lanes in turn begin}} AND queued.lane < {{where the lanes in turn end}}
AND queued.run_at > :from_us
AND {{known here}}

-- name: ring
-- The lanes in turn behind :after, round to :until, where the way round began, until :limit of them have a due job, or as
-- many as :steps are behind. Of each: the name of the lane, its weight, whether the names have begun again, when its first
-- job is due, and whether it is. Row 0 has the weight of the jobs in no such lane.
-- It asks as the claim does: for jobs of these :names, not expired, due after :from_us, in a queue that is not paused. What the
-- ring shows and no claim takes would cost a claim for every few lanes. A lane with such a job costs one index descent,
-- however many jobs it has. All other jobs are walked over; what is due before :from_us is told by the index alone.
WITH RECURSIVE ring (number, lane, run_at, due, found) AS (
    SELECT 0, :after, NULL, 0, 0
    UNION ALL
    SELECT ring.number + 1, following.lane, following.run_at,
           following.run_at <= max(fencerow.now(), min(:due_us, fencerow.now() + 86400000000)),
           ring.found + (following.run_at <= max(fencerow.now(), min(:due_us, fencerow.now() + 86400000000)))
    FROM ring
    JOIN fencerow.jobs AS following ON following.id = COALESCE(
        (SELECT queued.id
         FROM fencerow.jobs AS queued
         WHERE {{in turn}}
           AND queued.lane > ring.lane
           AND queued.lane <= {{ends}}
         ORDER BY queued.lane, queued.run_at
         LIMIT 1),
        (SELECT queued.id
         FROM fencerow.jobs AS queued
         WHERE {{in turn}}
           AND queued.lane <= :until
           AND (ring.lane > :until OR ring.number = 0 AND ring.lane = :until)
         ORDER BY queued.lane, queued.run_at
         LIMIT 1))
    WHERE ring.found < :limit
      AND ring.number < :steps
      AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name IN (:queue, '') AND queue.paused_at IS NOT NULL)
)
SELECT ring.number, ring.lane, COALESCE(known.weight, 1), ring.lane <= :until, ring.run_at, ring.due
FROM ring
{{weights of lanes in turn}}
ORDER BY ring.number;
