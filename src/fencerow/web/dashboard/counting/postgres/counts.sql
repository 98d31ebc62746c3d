-- Bounded counts for pages that people leave open: each reads a few index entries, however many jobs there are.

-- name: counted_live
-- Live jobs by queue and state, at most so many of each, with the earliest instant among those that were counted. The
-- queues are found by jumping along the index of the lanes; what runs or waits lies in small indexes of its own. Each
-- part asks for the order of its index, so that no plan walks through the table until it has found so many. It names no
-- lane: what an index computes is not read from it, and each entry would cost a look at its row.
WITH RECURSIVE lanes AS (
    (SELECT job.queue
     FROM fencerow.jobs AS job
     WHERE job.state = 'queued'
     ORDER BY job.queue
     LIMIT 1)
    UNION ALL
    SELECT (SELECT job.queue
            FROM fencerow.jobs AS job
            WHERE job.state = 'queued' AND job.queue > lanes.queue
            ORDER BY job.queue
            LIMIT 1)
    FROM lanes
    WHERE lanes.queue IS NOT NULL
),
counted AS (
    SELECT lanes.queue, 'queued' AS state, found.jobs, found.first
    FROM lanes
    CROSS JOIN LATERAL (SELECT count(*) AS jobs, min(seen.run_at) AS first
                        FROM (SELECT job.run_at
                              FROM fencerow.jobs AS job
                              WHERE job.queue = lanes.queue AND job.state = 'queued'
                              ORDER BY job.priority DESC
                              LIMIT CAST(:limit AS integer)) AS seen) AS found
    WHERE lanes.queue IS NOT NULL
    UNION ALL
    SELECT seen.queue, 'running', count(*), min(seen.claimed_at)
    FROM (SELECT job.queue, job.claimed_at
          FROM fencerow.jobs AS job
          WHERE job.state = 'running'
          ORDER BY job.holder
          LIMIT CAST(:limit AS integer)) AS seen
    GROUP BY seen.queue
    UNION ALL
    SELECT seen.queue, 'waiting', count(*), min(seen.run_at)
    FROM (SELECT job.queue, job.run_at
          FROM fencerow.jobs AS job
          WHERE job.state = 'waiting' AND job.gate IS NOT NULL
          ORDER BY job.gate, job.queue, job.priority, job.run_at, job.id
          LIMIT CAST(:limit AS integer)) AS seen
    GROUP BY seen.queue
)
SELECT counted.queue, counted.state, CAST(sum(counted.jobs) AS bigint), fencerow.us(min(counted.first)),
       (SELECT fencerow.us(fencerow.now()))
FROM counted
GROUP BY counted.queue, counted.state
ORDER BY counted.queue, counted.state;

-- name: counted_recent
-- Jobs that have ended within so many seconds, by state, at most so many of each.
SELECT wanted.state,
       (SELECT count(*)
        FROM (SELECT 1
              FROM fencerow.finished_jobs AS job
              WHERE job.state = wanted.state
                AND job.ended_at > fencerow.later((SELECT fencerow.now()), -CAST(:age_s AS double precision))
              LIMIT CAST(:limit AS integer)) AS seen)
FROM (VALUES ('succeeded'), ('failed'), ('cancelled')) AS wanted (state);

-- name: latest_failures
-- The jobs that failed last, by when that was: an index has them in this order, however many others have ended.
SELECT job.id, job.name, CAST(job.error AS text), fencerow.us(job.ended_at)
FROM fencerow.finished_jobs AS job
WHERE job.state = 'failed'
ORDER BY job.ended_at DESC
LIMIT CAST(:limit AS integer);

-- name: wal_position
-- How far the log of this database goes, in bytes.
SELECT CAST(pg_current_wal_lsn() - '0/0' AS bigint);

-- name: wal_replayed
-- How far this replica has come in the log, or nothing where it is none; and the microseconds since the transaction that it
-- replayed last.
SELECT CASE WHEN pg_is_in_recovery() THEN CAST(pg_last_wal_replay_lsn() - '0/0' AS bigint) END,
       CAST(COALESCE(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0) * 1000000 AS bigint);
