-- Affinity: a job that names a label is queued in the lane of that label, which only workers that carry it ask for. Once
-- `affinity_wait_s` have passed since it was due it falls back: for this one attempt it stands in the lane of anybody, or of
-- its share. Its lane is computed by the table, so whatever queues it again puts it into the lane of its label.

-- at: lane it came from
-- One whose wait for a label was over stood among those of anybody for that one attempt, which its row no longer says.
CASE WHEN affinity IS NULL OR fell_back_for < attempt THEN lane
     WHEN suspect THEN 'suspect:'
     ELSE COALESCE('share:' || share, '') END

-- fragment: waits for its label
-- It stands in the lane of its label, and has not fallen back for its next attempt.
state = 'queued'
AND affinity_wait_s IS NOT NULL
AND affinity IS NOT NULL
AND fell_back_for <= attempt

-- fragment: falls back
-- Anybody may take it now: the wait is over, or was before the clock went back.
{{waits for its label}}
AND run_at + CAST(affinity_wait_s * 1000000 AS INTEGER) <= {{until when jobs are due}}
AND (run_at + CAST(affinity_wait_s * 1000000 AS INTEGER) <= (SELECT fencerow.now())
     OR {{written before the clock went back}})

-- name: next_fall_back
-- In how many microseconds the next wait for a label is over; less than none if one is.
SELECT run_at + CAST(affinity_wait_s * 1000000 AS INTEGER) - fencerow.now()
FROM fencerow.jobs
WHERE {{waits for its label}}
ORDER BY run_at + CAST(affinity_wait_s * 1000000 AS INTEGER)
LIMIT 1;

-- name: fall_back
-- Put jobs that have waited long enough for their label into the lane of anybody, those whose wait was over first. They keep
-- their place by due time and their affinity: it counts for one attempt, whose number is noted, and nobody has to take it back.
-- One that would lie ahead, for the clock went back, is due now: else anybody would be those who carry the time on.
-- Guard: still queued for its label, and the wait over.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT id, attempt, fencerow.now(), 'fell_back', :actor, json_object('affinity', affinity)
FROM fencerow.jobs
WHERE {{falls back}}
ORDER BY run_at + CAST(affinity_wait_s * 1000000 AS INTEGER), id
LIMIT :limit;
UPDATE fencerow.jobs
SET fell_back_for = attempt + 1,
    run_at = min(run_at, fencerow.now())
WHERE id IN (
        SELECT id
        FROM fencerow.jobs
        WHERE {{falls back}}
        ORDER BY run_at + CAST(affinity_wait_s * 1000000 AS INTEGER), id
        LIMIT :limit
    )
  AND {{falls back}}
RETURNING id, queue, priority, run_at, false, lane;
