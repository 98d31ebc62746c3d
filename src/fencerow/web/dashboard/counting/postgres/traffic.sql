-- What came and what ended, by stretches of time, for pictures. What it reads is bounded: of each stretch and kind so many jobs.

-- name: read_traffic
-- For each of the latest stretches: of the jobs that ended in it the newest, at most so many of each state, with how long each
-- took from when it was due, in milliseconds, by queue; and how many ids were made in it, of live jobs and of those that have
-- ended, by queue, at most so many, too. An id begins with the millisecond in which a client made it, so the primary keys find the submits.
WITH clock AS MATERIALIZED (SELECT (SELECT fencerow.us(fencerow.now())) AS now_us),
edges AS MATERIALIZED (
    SELECT edge.began_us, fencerow.at(edge.began_us) AS began, fencerow.at(edge.began_us + CAST(:width_us AS bigint)) AS over,
           CAST(rpad(lpad(to_hex(edge.began_us / 1000), 12, '0'), 32, '0') AS uuid) AS first_id,
           CAST(rpad(lpad(to_hex((edge.began_us + CAST(:width_us AS bigint)) / 1000), 12, '0'), 32, '0') AS uuid) AS next_id
    FROM clock
    CROSS JOIN LATERAL generate_series(
        (clock.now_us / CAST(:width_us AS bigint) - CAST(:stretches AS bigint) + 1) * CAST(:width_us AS bigint),
        clock.now_us, CAST(:width_us AS bigint)
    ) AS edge (began_us)
)
SELECT edges.began_us, wanted.state AS kind, fencerow.us(found.first), CAST(found.by_queue AS text), (SELECT now_us FROM clock)
FROM edges
CROSS JOIN (VALUES ('succeeded'), ('failed')) AS wanted (state)
CROSS JOIN LATERAL (
    SELECT min(each.first) AS first, json_object_agg(each.queue, each.took) AS by_queue
    FROM (SELECT seen.queue, min(seen.ended_at) AS first,
                 json_agg(CAST(extract(epoch FROM seen.ended_at - seen.run_at) * 1000 AS bigint)) AS took
          FROM (SELECT job.queue, job.ended_at, job.run_at
                FROM fencerow.finished_jobs AS job
                WHERE job.state = wanted.state AND job.ended_at >= edges.began AND job.ended_at < edges.over
                ORDER BY job.ended_at DESC
                LIMIT CAST(:limit AS integer)) AS seen
          GROUP BY seen.queue) AS each
) AS found
WHERE found.by_queue IS NOT NULL
UNION ALL
SELECT edges.began_us, 'live', fencerow.us(found.first), CAST(found.by_queue AS text), (SELECT now_us FROM clock)
FROM edges
CROSS JOIN LATERAL (
    SELECT min(each.first) AS first, json_object_agg(each.queue, each.took) AS by_queue
    FROM (SELECT seen.queue, min(seen.submitted_at) AS first, json_build_array(count(*)) AS took
          FROM (SELECT job.queue, job.submitted_at
                FROM fencerow.jobs AS job
                WHERE job.id >= edges.first_id AND job.id < edges.next_id
                ORDER BY job.id DESC
                LIMIT CAST(:limit AS integer)) AS seen
          GROUP BY seen.queue) AS each
) AS found
WHERE found.by_queue IS NOT NULL
UNION ALL
SELECT edges.began_us, 'ended', fencerow.us(found.first), CAST(found.by_queue AS text), (SELECT now_us FROM clock)
FROM edges
CROSS JOIN LATERAL (
    SELECT min(each.first) AS first, json_object_agg(each.queue, each.took) AS by_queue
    FROM (SELECT seen.queue, min(seen.submitted_at) AS first, json_build_array(count(*)) AS took
          FROM (SELECT job.queue, job.submitted_at
                FROM fencerow.finished_jobs AS job
                WHERE job.id >= edges.first_id AND job.id < edges.next_id
                ORDER BY job.id DESC
                LIMIT CAST(:limit AS integer)) AS seen
          GROUP BY seen.queue) AS each
) AS found
WHERE found.by_queue IS NOT NULL
UNION ALL
SELECT 0, 'clock', NULL, NULL, now_us FROM clock;
