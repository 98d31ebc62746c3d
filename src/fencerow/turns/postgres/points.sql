-- What turns say where the core ends and moves jobs.

-- fragment: first gate
-- Where a job that needs turns waits first.
COALESCE('key:' || job.exclusive, 'limit:' || job.limits[1])

-- fragment: gates of the moved
-- Where those wait now that have given their turns up. The gates are to be looked at: a turn is free there.
SELECT 'key:' || moved.exclusive
FROM moved WHERE moved.state = 'waiting' AND moved.exclusive IS NOT NULL
UNION
SELECT 'limit:' || unnest(moved.limits)
FROM moved WHERE moved.state = 'waiting' AND moved.limits IS NOT NULL

-- at: where it waits first
-- Where a job that needs turns waits first.
{{first gate}}

-- at: whose turn is over
-- Others go first meanwhile. A strict job keeps what it has.
NOT job.strict AND (job.exclusive IS NOT NULL OR job.limits IS NOT NULL)

-- at: when jobs wait again
-- A turn is free where they had one, and where they wait is to be looked at, too.
left_gates AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    {{gates of the moved}}
)

-- at: when other ends are moved
-- Where a turn is free now, or somebody waits no longer: an arrival says that the gate is to be looked at.
left_gates AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT 'key:' || ended.exclusive FROM ended WHERE ended.exclusive IS NOT NULL
    UNION
    SELECT 'limit:' || unnest(ended.limits) FROM ended WHERE ended.limits IS NOT NULL
)

-- at: when attempts have succeeded
-- The turn of a key that lets one run at once is passed on to the next who waits for it, and no look at its gate is needed. The
-- lock of the gate is not needed either: as long as a job that lets nobody run beside itself has the turn, nobody else
-- gets one there (`Gate` counts no room), and it has it until this very statement is committed. So in every
-- snapshot one of the two has the turn. Whatever is less plain is left to a look: several who run at once or another that has
-- a turn, limits, a turn that is kept, a queue that is paused or passed over, several queues or priorities at the gate, one
-- that is not due or has expired, and nobody at all: who comes meanwhile may have been looked at already. One that somebody
-- has locked is passed over, as by a look. The next is locked behind the keys (`stamped`); the rows of wings for which an end may
-- still wait are locked by others that pass over what is locked, so no ring is known. If one closed, the server would end
-- a statement, which is repeated.
next_of_key AS MATERIALIZED (
    SELECT first.id, ended.exclusive
    FROM ended
    CROSS JOIN LATERAL (SELECT 'key:' || ended.exclusive AS gate) AS lane_of_key
    CROSS JOIN LATERAL (
        SELECT waiting.id, waiting.queue, waiting.priority, waiting.run_at, waiting.expires_at, waiting.exclusive,
               waiting.exclusive_at_once, waiting.limits
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = lane_of_key.gate AND waiting.state = 'waiting'
        ORDER BY waiting.queue, waiting.priority, waiting.run_at, waiting.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS first
    CROSS JOIN LATERAL (
        SELECT waiting.queue, waiting.priority
        FROM fencerow.jobs AS waiting
        WHERE waiting.gate = lane_of_key.gate AND waiting.state = 'waiting'
        ORDER BY waiting.queue DESC, waiting.priority DESC
        LIMIT 1
    ) AS last
    WHERE CAST(:alone AS integer) = 1
      AND (SELECT count(*) FROM stamped) >= 0
      AND ended.exclusive IS NOT NULL
      AND COALESCE(ended.exclusive_at_once, 1) = 1
      AND COALESCE(first.exclusive_at_once, 1) = 1
      AND first.limits IS NULL
      AND first.exclusive = ended.exclusive
      AND (last.queue, last.priority) = (first.queue, first.priority)
      AND first.run_at <= (SELECT fencerow.now())
      AND COALESCE(first.expires_at > (SELECT fencerow.now()), true)
      AND first.queue <> ALL(ARRAY(SELECT queue.name FROM fencerow.queues AS queue WHERE queue.paused_at IS NOT NULL))
      AND CASE WHEN EXISTS (SELECT 1 FROM fencerow.passed_queues)  -- there are none, as a rule, which is asked once
               THEN NOT EXISTS (SELECT 1 FROM fencerow.passed_queues AS passed
                                WHERE passed.gate = lane_of_key.gate AND passed.queue = first.queue)
               ELSE true END
      AND NOT EXISTS (SELECT 1 FROM fencerow.gates AS gate
                      WHERE gate.name = lane_of_key.gate AND gate.kept_until > (SELECT fencerow.now()))
      AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS holder
                      WHERE holder.exclusive = ended.exclusive AND holder.state IN ('queued', 'running')
                        AND holder.id <> ended.id)
),
passed_on AS (
    UPDATE fencerow.jobs AS job
    SET state = 'queued',
        gate = NULL,
        run_at = least(job.run_at, fencerow.now()),
        turned_at = (SELECT fencerow.now())
    WHERE job.id = ANY(ARRAY(SELECT next_of_key.id FROM next_of_key))
      AND job.state IS NOT DISTINCT FROM 'waiting'
      AND job.gate IS NOT NULL
    RETURNING job.id, job.queue, job.priority, job.run_at, fencerow.lane(job), job.exclusive
),
left_gates AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    (SELECT 'key:' || ended.exclusive FROM ended WHERE ended.exclusive IS NOT NULL
     EXCEPT
     SELECT 'key:' || passed_on.exclusive FROM passed_on)
    UNION
    SELECT 'limit:' || unnest(ended.limits) FROM ended WHERE ended.limits IS NOT NULL
)

-- at: what a claim writes of a given job
-- Its turn came with the claim.
turned_at = CASE WHEN job.gate IS NULL THEN job.turned_at ELSE clock.now END

-- at: told of successes
-- To whom turns were passed on.
CASE WHEN row_number() OVER () = 1
     THEN (SELECT CAST(json_agg(json_build_array(passed_on.id, passed_on.queue, passed_on.priority, fencerow.us(passed_on.run_at),
                                                 passed_on.lane)) AS text)
           FROM passed_on) END

-- at: when jobs are revived
-- Jobs come to their first gate again.
come_again AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT {{first gate}}
    FROM revived AS job
    WHERE job.exclusive IS NOT NULL OR job.limits IS NOT NULL
)
