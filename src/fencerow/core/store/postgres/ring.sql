-- Lanes in turn: each lane whose name a wing says so takes turns with the others of its queue and priority. The ring are these
-- lanes, in the order of their names. Who had the last turn is known to each worker for itself and stored nowhere: a lane
-- that comes newly is in the ring with its first job.

-- fragment: lane in turn
-- It is queued in one of them, and not as a suspect: those take no turns.
job.queue = :queue AND job.priority = CAST(:priority AS smallint) AND job.state = 'queued'
AND job.lane > {{where the lanes in turn begin}} AND job.lane < {{where the lanes in turn end}}

-- name: ring
-- The lanes in turn behind :after, round to :until, where the way round began, until :limit of them have a due job, or as
-- many as :steps are behind: a skip scan, one index descent for each. Of each: the name of the lane, its weight, whether
-- the names have begun again, when its first job is due, and whether it is. Row 0 has the weight of the jobs in no
-- such lane.
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
               WHERE {{lane in turn}}
                 AND job.lane > ring.lane
                 AND (ring.lane > :until OR ring.number = 0 AND ring.lane = :until OR job.lane <= :until)
               ORDER BY job.lane, job.run_at
               LIMIT 1)
              UNION ALL
              (SELECT job.lane, job.run_at
               FROM fencerow.jobs AS job
               WHERE {{lane in turn}}
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
{{weights of lanes in turn}}
ORDER BY ring.number;

