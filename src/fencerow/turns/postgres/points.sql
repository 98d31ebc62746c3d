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

-- at: when jobs have ended
-- Where a turn is free now, or somebody waits no longer: an arrival says that the gate is to be looked at.
left_gates AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT 'key:' || ended.exclusive FROM ended WHERE ended.exclusive IS NOT NULL
    UNION
    SELECT 'limit:' || unnest(ended.limits) FROM ended WHERE ended.limits IS NOT NULL
)

-- at: when jobs are revived
-- Jobs come to their first gate again.
come_again AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT {{first gate}}
    FROM revived AS job
    WHERE job.exclusive IS NOT NULL OR job.limits IS NOT NULL
)
