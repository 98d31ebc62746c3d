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

-- name: stuck_unique_keys
-- Unique keys whose job has been due for long and does not run, those first that have waited longest. As many keys are
-- looked at as are named, so that a table with millions of keys makes no long statement.
SELECT owned.scope, owned.key, late.id, late.queue, late.state, fencerow.now() - late.run_at,
       (SELECT count(*) FROM fencerow.job_events AS note
        WHERE note.job_id = late.id AND note.kind = 'replaced')
FROM (SELECT each.scope, each.key, each.job_id
      FROM fencerow.unique_jobs AS each
      ORDER BY each.scope, each.key
      LIMIT :looked_at) AS owned
JOIN fencerow.jobs AS late ON late.id = owned.job_id
WHERE late.state IN ('waiting', 'queued')
  AND NOT (late.state = 'waiting' AND late.gate IS NULL)  -- suspended: it is not late, whatever it was due
  AND late.run_at < fencerow.now() - CAST(:late_s * 1000000 AS INTEGER)
ORDER BY late.run_at, owned.scope, owned.key
LIMIT :limit;

-- name: labels_waited_for
-- The labels for which jobs wait, by queue, with how many of them wait for nobody else: they never fall back.
SELECT job.queue, job.affinity, count(*), count(*) FILTER (WHERE job.affinity_wait_s IS NULL)
FROM fencerow.jobs AS job
WHERE job.state = 'queued'
  AND job.affinity IS NOT NULL
  AND job.fell_back_for <= job.attempt
GROUP BY job.queue, job.affinity
ORDER BY 1, 2;
