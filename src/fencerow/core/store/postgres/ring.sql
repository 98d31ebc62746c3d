-- Lanes in turn: each lane whose name a wing says so takes turns with the others of its queue and priority. The ring are these
-- lanes, in the order of their names. Who had the last turn is known to each worker for itself and stored nowhere: a lane
-- that comes newly is in the ring with its first job.

-- fragment: ends
-- Where the part of the ring that is walked ends: the names have not begun again yet, or they have.
CASE WHEN ring.lane > :until OR ring.number = 0 AND ring.lane = :until THEN {{where the lanes in turn end}} ELSE :until END

-- fragment: in turn
-- It is queued in such a lane, not as a suspect (those take no turns), and could be claimed here once it is due.
queued.queue = :queue AND queued.priority = CAST(:priority AS smallint) AND queued.state = 'queued'
AND fencerow.lane(queued) > {{where the lanes in turn begin}} AND fencerow.lane(queued) < {{where the lanes in turn end}}
AND queued.run_at > fencerow.at(CAST(:from_us AS bigint))
AND {{known here}}

-- name: ring
-- The lanes in turn behind :after, round to :until, where the way round began, until :limit of them have a due job, or as
-- many as :steps are behind. Of each: the name of the lane, its weight, whether the names have begun again, when its first
-- job is due, and whether it is. Row 0 has the weight of the jobs in no such lane.
-- It asks as the claim does: for jobs of these :names, not expired, due after :from_us, in a queue that is not paused. What the
-- ring shows and no claim takes would cost a claim for every few lanes. A lane with such a job costs one index descent,
-- however many jobs it has. All other jobs are walked over; what is due before :from_us is told by the index alone.
WITH RECURSIVE ring (number, lane, run_at, due, found) AS (
    SELECT 0, CAST(:after AS text) COLLATE "C", CAST(NULL AS timestamptz), false, 0
    UNION ALL
    SELECT ring.number + 1, following.lane, following.run_at, following.due, ring.found + CAST(following.due AS integer)
    FROM ring
    CROSS JOIN LATERAL (
        SELECT next.lane, next.run_at,
               next.run_at <= (SELECT greatest(fencerow.now(), least(fencerow.at(CAST(:due_us AS bigint)),
                                                                     fencerow.now() + INTERVAL '1 day'))) AS due
        FROM ((SELECT fencerow.lane(queued), queued.run_at
               FROM fencerow.jobs AS queued
               WHERE {{in turn}}
                 AND fencerow.lane(queued) > ring.lane
                 AND fencerow.lane(queued) <= {{ends}}
               ORDER BY fencerow.lane(queued), queued.run_at
               LIMIT 1)
              UNION ALL
              (SELECT fencerow.lane(queued), queued.run_at
               FROM fencerow.jobs AS queued
               WHERE {{in turn}}
                 AND fencerow.lane(queued) <= :until
                 AND (ring.lane > :until OR ring.number = 0 AND ring.lane = :until)
               ORDER BY fencerow.lane(queued), queued.run_at
               LIMIT 1)
              LIMIT 1) AS next
    ) AS following
    WHERE ring.found < CAST(:limit AS integer)
      AND ring.number < CAST(:steps AS integer)
      AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name IN (:queue, '') AND queue.paused_at IS NOT NULL)
)
SELECT ring.number, ring.lane, COALESCE(known.weight, 1), ring.lane <= :until, fencerow.us(ring.run_at), ring.due
FROM ring
{{weights of lanes in turn}}
ORDER BY ring.number;
