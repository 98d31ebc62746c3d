-- Retention: finished jobs go by age and count per final state, in bounded batches; keys by their own lifetime.
-- A batch is one short transaction: what it removed is named once and its notes follow by those ids. The pages that
-- become free are used again by what comes next, so the file does not grow and nothing is moved inside it.

-- name: purge_by_age
-- Remove finished jobs of one state that are older than the age; forget_notes follows in the same transaction.
-- Guard: finished in that state, and without a retention of their own.
DELETE FROM fencerow.finished_jobs WHERE id IN (
    SELECT old.id
    FROM fencerow.finished_jobs AS old
    WHERE old.state = :state
      AND old.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
      AND old.retention_s IS NULL
      AND (:everywhere OR old.period = 0)
    ORDER BY old.ended_at
    LIMIT :limit
)
RETURNING id;

-- name: purge_by_own_age
-- Remove finished jobs that are past the retention they were submitted with.
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

-- name: purge_spent
-- Forget ids of ephemeral jobs that succeeded longer ago than the age; forget_notes follows in the same transaction.
DELETE FROM fencerow.spent_ids WHERE id IN (
    SELECT old.id
    FROM fencerow.spent_ids AS old
    WHERE old.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
    ORDER BY old.ended_at
    LIMIT :limit
)
RETURNING id;

-- name: purge_repeated
-- Forget ids that were submitted again longer ago than the age: no first submit of theirs is on its way any more.
DELETE FROM fencerow.repeated_ids WHERE id IN (
    SELECT old.id
    FROM fencerow.repeated_ids AS old
    WHERE old.at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
    ORDER BY old.at
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

-- name: spent_workers
-- Workers that ended long ago and hold nothing.
SELECT worker.id
FROM fencerow.workers AS worker
WHERE worker.state IN ('dead', 'retired')
  AND worker.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
  AND worker.id NOT IN (SELECT job.holder FROM fencerow.jobs AS job WHERE job.state = 'running' AND job.holder IS NOT NULL);

-- name: forget_workers
-- Drop rows of workers that were found to have ended long ago and to hold nothing. They come by value: a statement that
-- writes worker rows must not hold the jobs. A slow claim under a dropped id is adopted.
-- Guard: not alive, and ended before the age.
DELETE FROM fencerow.workers
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state IN ('dead', 'retired')
  AND ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
RETURNING id;
