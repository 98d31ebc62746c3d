-- What `doctor` asks a SQLite file. Nothing here reads a payload or changes anything.

-- name: journal_mode
-- As our connections have it.
PRAGMA main.journal_mode;

-- name: synchronous
PRAGMA main.synchronous;

-- name: quick_check
-- Up to ten faults of the file.
PRAGMA main.quick_check(10);

-- name: orphans
-- Running jobs whose holder's lease is over, and how long the oldest has been so. A holder without a row counts
-- from the claim.
SELECT count(*), COALESCE(fencerow.now() - min(COALESCE(holder.lease_until, job.claimed_at)), 0)
FROM fencerow.jobs AS job
LEFT JOIN fencerow.workers AS holder ON holder.id = job.holder
WHERE job.state = 'running'
  AND (holder.id IS NULL OR holder.state <> 'alive' OR holder.lease_until < fencerow.now());

-- name: leftovers
-- Keys and windows that have been over for longer than the age, counted up to the limit.
SELECT (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.once_keys WHERE expires_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER) LIMIT :limit) AS keys_over)
     + (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.dedupe_windows WHERE until < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER) LIMIT :limit) AS windows_over);
