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

-- name: labels_waited_for
-- The labels for which jobs wait, by queue, with how many of them wait for nobody else: they never fall back.
SELECT job.queue, job.affinity, count(*), count(*) FILTER (WHERE job.affinity_wait_s IS NULL)
FROM fencerow.jobs AS job
WHERE job.state = 'queued'
  AND job.affinity IS NOT NULL
  AND job.fell_back_for <= job.attempt
GROUP BY job.queue, job.affinity
ORDER BY 1, 2;
