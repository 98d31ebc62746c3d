-- Affinity: a job that names a label is queued in the lane of that label, which only workers that carry it ask for. Once
-- `affinity_wait_s` have passed since it was due it falls back: for this one attempt it stands in the lane of anybody, or of
-- its share. Its lane is computed by the table, so whatever queues it again puts it into the lane of its label.

-- at: lane it came from
-- One whose wait for a label was over stood among those of anybody for that one attempt, which its row no longer says.
CASE WHEN job.affinity IS NULL OR job.fell_back_for < job.attempt THEN fencerow.lane(job)
     WHEN job.suspect THEN 'suspect:'
     ELSE COALESCE('share:' || job.share, '') END

-- fragment: has not fallen back
-- For its next attempt it stands in the lane of its label, but not for ever.
job.affinity_wait_s IS NOT NULL
AND job.affinity IS NOT NULL
AND job.fell_back_for <= job.attempt

-- fragment: falls back
-- Anybody may take it now: the wait is over, or was before the clock went back.
{{has not fallen back}}
AND fencerow.later(job.run_at, job.affinity_wait_s) <= {{until when jobs are due}}
AND (fencerow.later(job.run_at, job.affinity_wait_s) <= (SELECT fencerow.now())
     OR {{written before the clock went back}})

-- name: next_fall_back
-- In how many microseconds the next wait for a label is over; less than none if one is.
SELECT fencerow.us(fencerow.later(job.run_at, job.affinity_wait_s)) - fencerow.us(fencerow.now())
FROM fencerow.jobs AS job
WHERE job.state = 'queued' AND {{has not fallen back}}
ORDER BY fencerow.later(job.run_at, job.affinity_wait_s)
LIMIT 1;

-- name: fall_back
-- Put jobs that have waited long enough for their label into the lane of anybody, those whose wait was over first. They keep
-- their place by due time and their affinity: it counts for one attempt, whose number is noted, and nobody has to take it back.
-- One that would lie ahead, for the clock went back, is due now: else anybody would be those who carry the time on.
-- Guard: still queued for its label, and the wait over; a claim, a cancel or a change that came first makes this change
-- nothing. The guard looks at the row of an id, and walks no index of those who wait (IS NOT DISTINCT FROM).
WITH moved AS (
    UPDATE fencerow.jobs AS job
    SET fell_back_for = job.attempt + 1,
        run_at = least(job.run_at, fencerow.now())
    WHERE job.id = ANY(ARRAY(
            SELECT job.id
            FROM fencerow.jobs AS job
            WHERE job.state = 'queued' AND {{falls back}}
            ORDER BY fencerow.later(job.run_at, job.affinity_wait_s)
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
      AND job.state IS NOT DISTINCT FROM 'queued'
      AND {{falls back}}
    RETURNING job.id, job.attempt, job.queue, job.priority, job.run_at, job.affinity, fencerow.lane(job)
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, (SELECT fencerow.now()), 'fell_back', CAST(:actor AS text),
           json_build_object('affinity', moved.affinity)
    FROM moved
)
SELECT CAST(id AS text), queue, priority, fencerow.us(run_at), false, lane FROM moved;
