-- Retention by rows: finished jobs go by age and count per final state, in bounded batches; keys by their own
-- lifetime. What lies in a period goes with it (periods.sql): its rows are touched only where `everywhere` says so.

-- name: purge_by_age
-- Remove finished jobs of one state that are older than the age; forget_notes follows in the same transaction.
-- Guard: finished in that state, and past its own retention_s where it has one; locked rows (a revive) are left.
-- Those that were found are removed by their ids: with = a plan may walk the index of their ages for them.
DELETE FROM fencerow.finished_jobs AS job
WHERE job.id = ANY(ARRAY(
        SELECT old.id
        FROM fencerow.finished_jobs AS old
        WHERE old.state = :state
          AND old.ended_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
          AND old.retention_s IS NULL
          AND (CAST(:everywhere AS boolean) OR old.period = 0)
        ORDER BY old.ended_at
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ))
  AND job.state IS NOT DISTINCT FROM CAST(:state AS text)
RETURNING job.id;

-- name: purge_by_own_age
-- Remove finished jobs that are past the retention they were submitted with. They lie in no period.
DELETE FROM fencerow.finished_jobs AS job
WHERE job.id = ANY(ARRAY(
        SELECT old.id
        FROM fencerow.finished_jobs AS old
        WHERE old.retention_s IS NOT NULL
          AND fencerow.later(old.ended_at, old.retention_s) < (SELECT fencerow.now())
          AND old.period = 0
        ORDER BY fencerow.later(old.ended_at, old.retention_s)
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ))
  AND job.period = 0
RETURNING job.id;

-- name: purge_by_count
-- Remove the oldest finished jobs of one state beyond the number to keep, wherever they lie.
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
  AND job.state IS NOT DISTINCT FROM CAST(:state AS text)
RETURNING job.id;

-- name: purge_spent
-- Forget ids of ephemeral jobs that succeeded longer ago than the age; forget_notes follows in the same transaction.
-- Guard: the age, so an id that was spent anew meanwhile stays.
DELETE FROM fencerow.spent_ids AS spent
WHERE spent.id = ANY(ARRAY(
        SELECT old.id
        FROM fencerow.spent_ids AS old
        WHERE old.ended_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
        ORDER BY old.ended_at
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ))
RETURNING spent.id;

-- name: purge_repeated
-- Forget ids that were submitted again longer ago than the age: no first submit of theirs is on its way any more.
DELETE FROM fencerow.repeated_ids AS repeated
WHERE repeated.id = ANY(ARRAY(
        SELECT old.id
        FROM fencerow.repeated_ids AS old
        WHERE old.at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
        ORDER BY old.at
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ))
RETURNING repeated.id;

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
  AND COALESCE(owned.expires_at <= (SELECT fencerow.now()), false)  -- no condition of an index: found by their places
RETURNING owned.scope, owned.key;

-- name: spent_workers
-- Workers that ended long ago and hold nothing.
SELECT worker.id
FROM fencerow.workers AS worker
WHERE worker.state IN ('dead', 'retired')
  AND worker.ended_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.holder = worker.id AND job.state = 'running');

-- name: forget_workers
-- Drop rows of workers that were found to have ended long ago and to hold nothing.
-- Guard: not alive, ended before the age, and no running job names it. A slow claim under a dropped id is adopted.
DELETE FROM fencerow.workers AS worker
WHERE worker.id = ANY(CAST(:ids AS uuid[]))
  AND worker.state IN ('dead', 'retired')
  AND worker.ended_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.holder = worker.id AND job.state = 'running')
RETURNING worker.id;
