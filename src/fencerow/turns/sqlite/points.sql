-- What turns say where the core ends and moves jobs.

-- fragment: first gate
-- Where a job that needs turns waits first.
COALESCE('key:' || exclusive, 'limit:' || json_extract(limits, '$[0]'))

-- at: where it waits first
-- Where a job that needs turns waits first.
{{first gate}}

-- at: whose turn is over
-- Others go first meanwhile. A strict job keeps what it has.
strict = 0 AND (exclusive IS NOT NULL OR limits IS NOT NULL)

-- at: when jobs wait again
-- A turn is free where they had one, and where they wait is to be looked at, too.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT 'key:' || job.exclusive
FROM fencerow.moved AS moved CROSS JOIN fencerow.jobs AS job ON job.id = moved.id
WHERE +job.state = 'waiting' AND +job.exclusive IS NOT NULL
UNION
SELECT 'limit:' || named.value
FROM fencerow.moved AS moved CROSS JOIN fencerow.jobs AS job ON job.id = moved.id
CROSS JOIN json_each(job.limits) AS named
WHERE +job.state = 'waiting';

-- at: when jobs have ended
-- Where a turn is free now, or somebody waits no longer: an arrival says that the gate is to be looked at. At a key that is so
-- where somebody waits, or a turn is kept for one who waits elsewhere: at most keys nobody does. Whoever comes later leaves an
-- arrival, and whoever came before is seen here: transactions follow one another under the file's one write lock.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT 'key:' || ended.exclusive
FROM fencerow.ended AS ended
WHERE ended.exclusive IS NOT NULL
  AND (EXISTS (SELECT 1 FROM fencerow.jobs AS waiting
               WHERE waiting.gate = 'key:' || ended.exclusive AND waiting.state = 'waiting')
       OR EXISTS (SELECT 1 FROM fencerow.gates AS gate
                  WHERE gate.name = 'key:' || ended.exclusive AND gate.kept_for IS NOT NULL))
UNION
SELECT 'limit:' || named.value
FROM fencerow.ended AS ended JOIN json_each(ended.limits) AS named
WHERE ended.limits IS NOT NULL;

-- at: when jobs are revived
-- Jobs come to their first gate again.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT {{first gate}}
FROM fencerow.revived AS revived
WHERE revived.exclusive IS NOT NULL OR revived.limits IS NOT NULL;

-- at: what a claim writes of a given job
-- Its turn came with the claim.
turned_at = CASE WHEN gate IS NULL THEN turned_at ELSE (SELECT fencerow.now()) END
