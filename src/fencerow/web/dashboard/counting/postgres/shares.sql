-- Shares, a page at a time: what a page costs grows with the shares that it shows, and not with how many jobs there are.

-- fragment: priorities of its queue
-- Those that have queued jobs, by jumps along the index of the lanes.
(WITH RECURSIVE level AS (
    (SELECT job.priority
     FROM fencerow.jobs AS job
     WHERE job.queue = place.queue AND job.state = 'queued'
     ORDER BY job.priority DESC
     LIMIT 1)
    UNION ALL
    SELECT (SELECT job.priority
            FROM fencerow.jobs AS job
            WHERE job.queue = place.queue AND job.state = 'queued' AND job.priority < level.priority
            ORDER BY job.priority DESC
            LIMIT 1)
    FROM level
    WHERE level.priority IS NOT NULL)
 SELECT level.priority FROM level WHERE level.priority IS NOT NULL)

-- name: shares_page
-- The shares behind a queue and share, at most :limit. Each step jumps to the next lane of a share in a queue, at whatever
-- priority, and behind the last one to the next queue. Of each share at most :most queued jobs are counted, at most :most
-- running jobs of all; the last value is whether more run. A job with a label is in the lane of its label, and not counted.
WITH RECURSIVE place (queue, lane, found) AS (
    SELECT CAST(:queue AS text), CAST('share:' || CAST(:share AS text) AS text) COLLATE "C", 0
    UNION ALL
    SELECT next.queue, next.lane, place.found + next.shares
    FROM place
    CROSS JOIN LATERAL (
        (SELECT place.queue, following.lane, 1 AS shares
         FROM {{priorities of its queue}} AS level
         CROSS JOIN LATERAL (SELECT fencerow.lane(job)
                             FROM fencerow.jobs AS job
                             WHERE job.queue = place.queue AND job.priority = level.priority AND job.state = 'queued'
                               AND fencerow.lane(job) > place.lane AND fencerow.lane(job) < 'share;'
                             ORDER BY fencerow.lane(job)
                             LIMIT 1) AS following
         ORDER BY following.lane
         LIMIT 1)
        UNION ALL
        (SELECT job.queue, CAST('share:' AS text) COLLATE "C", 0
         FROM fencerow.jobs AS job
         WHERE job.state = 'queued' AND job.queue > place.queue
         ORDER BY job.queue
         LIMIT 1)
        LIMIT 1) AS next
    WHERE place.found < CAST(:limit AS integer)
),
running AS MATERIALIZED (
    SELECT job.queue, job.share
    FROM fencerow.jobs AS job
    WHERE job.state = 'running'
    ORDER BY job.holder
    LIMIT CAST(:most AS integer)
),
named AS (
    SELECT place.queue, substr(place.lane, 7) AS share FROM place WHERE place.lane > 'share:'
    UNION
    SELECT running.queue, running.share COLLATE "C" FROM running WHERE running.share IS NOT NULL
    UNION
    SELECT given.queue, given.share COLLATE "C" FROM fencerow.shares AS given
),
shown AS (
    SELECT named.queue, named.share, 'share:' || named.share AS lane
    FROM named
    WHERE (named.queue, named.share) > (CAST(:queue AS text), CAST(:share AS text) COLLATE "C")
    ORDER BY named.queue, named.share
    LIMIT CAST(:limit AS integer)
)
SELECT place.queue, place.share, COALESCE(known.weight, 1), COALESCE(queued.jobs, 0),
       (SELECT count(*) FROM running WHERE running.queue = place.queue AND running.share = place.share),
       fencerow.us(first.due),
       (SELECT count(*) FROM running) = CAST(:most AS integer)
FROM shown AS place
LEFT JOIN fencerow.shares AS known ON known.queue = place.queue AND known.share = place.share
LEFT JOIN LATERAL (SELECT count(*) AS jobs
                   FROM (SELECT 1
                         FROM {{priorities of its queue}} AS level
                         CROSS JOIN LATERAL (SELECT job.id
                                             FROM fencerow.jobs AS job
                                             WHERE job.queue = place.queue AND job.priority = level.priority
                                               AND job.state = 'queued' AND fencerow.lane(job) = place.lane
                                             ORDER BY job.run_at, job.id
                                             LIMIT CAST(:most AS integer)) AS seen
                         LIMIT CAST(:most AS integer)) AS few) AS queued ON place.share > ''
LEFT JOIN LATERAL (SELECT min(earliest.run_at) AS due
                   FROM {{priorities of its queue}} AS level
                   CROSS JOIN LATERAL (SELECT job.run_at
                                       FROM fencerow.jobs AS job
                                       WHERE job.queue = place.queue AND job.priority = level.priority
                                         AND job.state = 'queued' AND fencerow.lane(job) = place.lane
                                       ORDER BY job.run_at
                                       LIMIT 1) AS earliest) AS first ON place.share > ''
ORDER BY place.queue, place.share;
