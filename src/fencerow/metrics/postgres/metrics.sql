-- What one look for metrics sees of the database. Each statement is bounded, and none takes a lock on rows.

-- name: metrics_lanes
-- Each lane (queue, priority and name) that has queued jobs: the first one's instant, and how many are due and how many come
-- later, up to a bound. The walk goes from one lane to the next by the index of the lanes, however long they are. The
-- counts say an order, so that the server stops at the bound: without it it gathers the whole lane first.
WITH RECURSIVE lane (id) AS (
    SELECT (SELECT first.id FROM fencerow.jobs AS first
            WHERE first.state = 'queued'
            ORDER BY first.queue, first.priority DESC, fencerow.lane(first), first.run_at, first.id LIMIT 1)
    UNION ALL
    SELECT COALESCE(
        (SELECT beside.id FROM fencerow.jobs AS beside
         WHERE beside.state = 'queued' AND beside.queue = here.queue AND beside.priority = here.priority
           AND fencerow.lane(beside) > here.lane
         ORDER BY fencerow.lane(beside), beside.run_at, beside.id LIMIT 1),
        (SELECT lower.id FROM fencerow.jobs AS lower
         WHERE lower.state = 'queued' AND lower.queue = here.queue AND lower.priority < here.priority
         ORDER BY lower.priority DESC, fencerow.lane(lower), lower.run_at, lower.id LIMIT 1),
        (SELECT next.id FROM fencerow.jobs AS next
         WHERE next.state = 'queued' AND next.queue > here.queue
         ORDER BY next.queue, next.priority DESC, fencerow.lane(next), next.run_at, next.id LIMIT 1))
    FROM lane
    CROSS JOIN LATERAL (SELECT at.id, at.queue, at.priority, fencerow.lane(at) FROM fencerow.jobs AS at
                        WHERE at.id = lane.id LIMIT 1) AS here
)
SELECT here.queue, fencerow.us(here.run_at), (SELECT fencerow.us(fencerow.now())),
       (SELECT count(*) FROM (SELECT 1 FROM fencerow.jobs AS due
                              WHERE due.state = 'queued' AND due.queue = here.queue AND due.priority = here.priority
                                AND fencerow.lane(due) = here.lane AND due.run_at <= (SELECT fencerow.now())
                              ORDER BY due.run_at, due.id LIMIT CAST(:jobs_max AS integer) + 1) AS counted),
       (SELECT count(*) FROM (SELECT 1 FROM fencerow.jobs AS later
                              WHERE later.state = 'queued' AND later.queue = here.queue AND later.priority = here.priority
                                AND fencerow.lane(later) = here.lane AND later.run_at > (SELECT fencerow.now())
                              ORDER BY later.run_at, later.id LIMIT CAST(:jobs_max AS integer) + 1) AS counted)
FROM (SELECT lane.id FROM lane LIMIT CAST(:lanes_max AS integer)) AS lanes
CROSS JOIN LATERAL (SELECT at.id, at.queue, at.priority, fencerow.lane(at), at.run_at FROM fencerow.jobs AS at
                    WHERE at.id = lanes.id LIMIT 1) AS here;

-- name: metrics_running
-- Jobs that run, by queue and name, and when the first of them was claimed.
SELECT job.queue, job.name, count(*), fencerow.us(min(job.claimed_at)), (SELECT fencerow.us(fencerow.now()))
FROM (SELECT running.queue, running.name, running.claimed_at FROM fencerow.jobs AS running
      WHERE running.state = 'running' ORDER BY running.holder LIMIT CAST(:jobs_max AS integer) + 1) AS job
GROUP BY job.queue, job.name;

-- name: metrics_waiting
-- Jobs that wait at a gate.
SELECT job.queue, count(*)
FROM (SELECT gated.queue FROM fencerow.jobs AS gated
      WHERE gated.state = 'waiting' AND gated.gate IS NOT NULL
      ORDER BY gated.gate, gated.queue, gated.priority, gated.run_at, gated.id
      LIMIT CAST(:jobs_max AS integer) + 1) AS job
GROUP BY job.queue;

-- name: metrics_paused
-- Queues that are paused, and schedules that are, by their job.
SELECT 'queue', queue.name, 1 FROM fencerow.queues AS queue WHERE queue.paused_at IS NOT NULL AND queue.name <> ''
UNION ALL
SELECT 'schedule', schedule.job, count(*)
FROM fencerow.schedules AS schedule WHERE schedule.paused_at IS NOT NULL GROUP BY schedule.job;

-- name: metrics_workers
-- Living workers, and how many of them should have renewed their lease by now.
SELECT count(*), count(*) FILTER (WHERE worker.lease_until < (SELECT fencerow.now()))
FROM fencerow.workers AS worker WHERE worker.state = 'alive';

-- name: metrics_lock_waits
-- Sessions of this database that wait for a lock which another one holds; and the microseconds for which the oldest
-- transaction has held back the horizon.
SELECT count(DISTINCT waiting.pid),
       (SELECT CAST(COALESCE(extract(epoch FROM clock_timestamp() - min(old.xact_start)), 0) * 1000000 AS bigint)
        FROM pg_catalog.pg_stat_activity AS old
        WHERE (old.backend_xmin IS NOT NULL OR old.backend_xid IS NOT NULL)
          AND old.datname = current_database()
          AND old.backend_type = 'client backend'
          AND old.pid <> pg_backend_pid())
FROM pg_catalog.pg_locks AS waiting
JOIN pg_catalog.pg_stat_activity AS session ON session.pid = waiting.pid
WHERE NOT waiting.granted AND session.datname = current_database();
