-- Retention: finished jobs go by age and count per final state, in bounded batches; keys by their own lifetime.

-- name: purge_by_age
-- Remove finished jobs of one state that are older than the age, with what was noted about them.
-- Guard: finished in that state, and past its own retention_s where it has one; locked rows (a revive) are left.
WITH gone AS (
    DELETE FROM fencerow.finished_jobs AS job
    WHERE job.id = ANY(ARRAY(
            SELECT old.id
            FROM fencerow.finished_jobs AS old
            WHERE old.state = :state
              AND old.ended_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
              AND old.retention_s IS NULL
            ORDER BY old.ended_at
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
      AND job.state = :state
    RETURNING job.id
),
events AS (DELETE FROM fencerow.job_events AS note USING gone WHERE note.job_id = gone.id),
logs AS (DELETE FROM fencerow.job_logs AS note USING gone WHERE note.job_id = gone.id),
progress AS (DELETE FROM fencerow.job_progress AS note USING gone WHERE note.job_id = gone.id)
SELECT id FROM gone;

-- name: purge_by_own_age
-- Remove finished jobs that are past the retention they were submitted with.
WITH gone AS (
    DELETE FROM fencerow.finished_jobs AS job
    WHERE job.id = ANY(ARRAY(
            SELECT old.id
            FROM fencerow.finished_jobs AS old
            WHERE old.retention_s IS NOT NULL
              AND fencerow.later(old.ended_at, old.retention_s) < (SELECT fencerow.now())
            ORDER BY fencerow.later(old.ended_at, old.retention_s)
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
    RETURNING job.id
),
events AS (DELETE FROM fencerow.job_events AS note USING gone WHERE note.job_id = gone.id),
logs AS (DELETE FROM fencerow.job_logs AS note USING gone WHERE note.job_id = gone.id),
progress AS (DELETE FROM fencerow.job_progress AS note USING gone WHERE note.job_id = gone.id)
SELECT id FROM gone;

-- name: purge_by_count
-- Remove the oldest finished jobs of one state beyond the number to keep.
WITH gone AS (
    DELETE FROM fencerow.finished_jobs AS job
    WHERE job.id = ANY(ARRAY(
            SELECT old.id
            FROM fencerow.finished_jobs AS old
            WHERE old.state = :state
              AND old.retention_s IS NULL
              AND old.ended_at < (SELECT kept.ended_at
                                  FROM fencerow.finished_jobs AS kept
                                  WHERE kept.state = :state
                                  ORDER BY kept.ended_at DESC
                                  OFFSET CAST(:keep AS bigint) - 1
                                  LIMIT 1)
            ORDER BY old.ended_at
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
      AND job.state = :state
    RETURNING job.id
),
events AS (DELETE FROM fencerow.job_events AS note USING gone WHERE note.job_id = gone.id),
logs AS (DELETE FROM fencerow.job_logs AS note USING gone WHERE note.job_id = gone.id),
progress AS (DELETE FROM fencerow.job_progress AS note USING gone WHERE note.job_id = gone.id)
SELECT id FROM gone;

-- name: purge_keys
-- Forget keys whose lifetime, counted from the end of their job, is over.
-- Guard: the expiry, so a key that was taken anew meanwhile stays.
DELETE FROM fencerow.keys AS owned
WHERE owned.ctid = ANY(ARRAY(
        SELECT old.ctid
        FROM fencerow.keys AS old
        WHERE old.expires_at <= (SELECT fencerow.now())
        ORDER BY old.expires_at
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ))
  AND owned.expires_at <= (SELECT fencerow.now())
RETURNING owned.scope, owned.key;
