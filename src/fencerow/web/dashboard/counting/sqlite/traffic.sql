-- What came and what ended, by stretches of time, for pictures. What it reads is bounded: of each stretch and kind so many jobs.

-- name: read_traffic
-- For each of the latest stretches: of the jobs that ended in it the newest, at most so many of each state, with how long each
-- took from when it was due, in milliseconds, by queue; and how many ids were made in it, of live jobs and of those that have
-- ended, by queue, at most so many, too. An id begins with the millisecond in which a client made it, so the primary keys find the submits.
WITH RECURSIVE clock (now_us) AS (SELECT fencerow.now()),
starts (began) AS (
    SELECT (now_us / :width_us - :stretches + 1) * :width_us FROM clock
    UNION ALL
    SELECT starts.began + :width_us FROM starts, clock WHERE starts.began + :width_us <= clock.now_us
),
edges AS (
    SELECT began,
           printf('%08x-%04x-', began / 1000 >> 16, began / 1000 & 65535) AS first_id,
           printf('%08x-%04x-', (began + :width_us) / 1000 >> 16, (began + :width_us) / 1000 & 65535) AS next_id
    FROM starts
),
found AS (
    SELECT edges.began, wanted.value AS kind,
           (SELECT json_array(min(each.first), json_group_object(each.queue, json(each.took)))
            FROM (SELECT seen.queue, min(seen.ended_at) AS first,
                         json_group_array((seen.ended_at - seen.run_at) / 1000) AS took
                  FROM (SELECT job.queue, job.ended_at, job.run_at
                        FROM fencerow.finished_jobs AS job
                        WHERE job.state = wanted.value
                          AND job.ended_at >= edges.began AND job.ended_at < edges.began + :width_us
                        ORDER BY job.ended_at DESC
                        LIMIT :limit) AS seen
                  GROUP BY seen.queue) AS each) AS value
    FROM edges, json_each('["succeeded", "failed"]') AS wanted
    UNION ALL
    SELECT edges.began, 'live',
           (SELECT json_array(min(each.first), json_group_object(each.queue, json(each.took)))
            FROM (SELECT seen.queue, min(seen.submitted_at) AS first, json_array(count(*)) AS took
                  FROM (SELECT job.queue, job.submitted_at
                        FROM fencerow.jobs AS job
                        WHERE job.id >= edges.first_id AND job.id < edges.next_id
                        ORDER BY job.id DESC
                        LIMIT :limit) AS seen
                  GROUP BY seen.queue) AS each)
    FROM edges
    UNION ALL
    SELECT edges.began, 'ended',
           (SELECT json_array(min(each.first), json_group_object(each.queue, json(each.took)))
            FROM (SELECT seen.queue, min(seen.submitted_at) AS first, json_array(count(*)) AS took
                  FROM (SELECT job.queue, job.submitted_at
                        FROM fencerow.finished_jobs AS job
                        WHERE job.id >= edges.first_id AND job.id < edges.next_id
                        ORDER BY job.id DESC
                        LIMIT :limit) AS seen
                  GROUP BY seen.queue) AS each)
    FROM edges
)
SELECT began, kind, json_extract(value, '$[0]'), json_extract(value, '$[1]'), (SELECT now_us FROM clock)
FROM found
WHERE json_extract(value, '$[0]') IS NOT NULL
UNION ALL
SELECT 0, 'clock', NULL, NULL, now_us FROM clock;
