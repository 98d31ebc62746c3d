-- Retention: finished jobs go by age and count per final state, in bounded batches; keys by their own lifetime.
-- The same selection stands in each statement of a script; all of them see one instant under the one write lock.

-- name: purge_by_age
-- Remove finished jobs of one state that are older than the age, with what was noted about them.
-- Guard: finished in that state, and without a retention of their own.
DELETE FROM fencerow.job_events WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
      AND old.retention_s IS NULL
    ORDER BY old.ended_at
    LIMIT :limit
);
DELETE FROM fencerow.job_logs WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
      AND old.retention_s IS NULL
    ORDER BY old.ended_at
    LIMIT :limit
);
DELETE FROM fencerow.job_progress WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
      AND old.retention_s IS NULL
    ORDER BY old.ended_at
    LIMIT :limit
);
DELETE FROM fencerow.finished_jobs WHERE id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
      AND old.retention_s IS NULL
    ORDER BY old.ended_at
    LIMIT :limit
)
RETURNING id;

-- name: purge_by_own_age
-- Remove finished jobs that are past the retention they were submitted with.
DELETE FROM fencerow.job_events WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.retention_s IS NOT NULL
      AND old.ended_at + old.retention_s * 1000000 < fencerow.now()
    ORDER BY old.ended_at + old.retention_s * 1000000
    LIMIT :limit
);
DELETE FROM fencerow.job_logs WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.retention_s IS NOT NULL
      AND old.ended_at + old.retention_s * 1000000 < fencerow.now()
    ORDER BY old.ended_at + old.retention_s * 1000000
    LIMIT :limit
);
DELETE FROM fencerow.job_progress WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.retention_s IS NOT NULL
      AND old.ended_at + old.retention_s * 1000000 < fencerow.now()
    ORDER BY old.ended_at + old.retention_s * 1000000
    LIMIT :limit
);
DELETE FROM fencerow.finished_jobs WHERE id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.retention_s IS NOT NULL
      AND old.ended_at + old.retention_s * 1000000 < fencerow.now()
    ORDER BY old.ended_at + old.retention_s * 1000000
    LIMIT :limit
)
RETURNING id;

-- name: purge_by_count
-- Remove the oldest finished jobs of one state beyond the number to keep.
DELETE FROM fencerow.job_events WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.retention_s IS NULL
      AND old.ended_at < (SELECT kept.ended_at
                          FROM fencerow.finished_jobs AS kept
                          WHERE kept.state = :state
                          ORDER BY kept.ended_at DESC
                          LIMIT 1 OFFSET :keep - 1)
    ORDER BY old.ended_at
    LIMIT :limit
);
DELETE FROM fencerow.job_logs WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.retention_s IS NULL
      AND old.ended_at < (SELECT kept.ended_at
                          FROM fencerow.finished_jobs AS kept
                          WHERE kept.state = :state
                          ORDER BY kept.ended_at DESC
                          LIMIT 1 OFFSET :keep - 1)
    ORDER BY old.ended_at
    LIMIT :limit
);
DELETE FROM fencerow.job_progress WHERE job_id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.retention_s IS NULL
      AND old.ended_at < (SELECT kept.ended_at
                          FROM fencerow.finished_jobs AS kept
                          WHERE kept.state = :state
                          ORDER BY kept.ended_at DESC
                          LIMIT 1 OFFSET :keep - 1)
    ORDER BY old.ended_at
    LIMIT :limit
);
DELETE FROM fencerow.finished_jobs WHERE id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.retention_s IS NULL
      AND old.ended_at < (SELECT kept.ended_at
                          FROM fencerow.finished_jobs AS kept
                          WHERE kept.state = :state
                          ORDER BY kept.ended_at DESC
                          LIMIT 1 OFFSET :keep - 1)
    ORDER BY old.ended_at
    LIMIT :limit
)
RETURNING id;

-- name: purge_keys
-- Forget keys whose lifetime, counted from the end of their job, is over.
DELETE FROM fencerow.keys
WHERE (scope, key) IN (SELECT old.scope, old.key
                       FROM fencerow.keys AS old
                       WHERE old.expires_at <= fencerow.now()
                       ORDER BY old.expires_at
                       LIMIT :limit)
RETURNING scope, key;
