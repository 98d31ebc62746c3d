-- Shares, a page at a time: what a page costs grows with the shares that it shows, and not with how many jobs there are.

-- fragment: priorities of its queue
-- Those that have queued jobs, by jumps along the index of the lanes.
(WITH RECURSIVE level (priority) AS (
    SELECT (SELECT job.priority
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
-- priority, and behind the last one (no lane) to the next queue. Of each share at most :most queued jobs of each priority are
-- counted, at most :most running jobs of all; the last value is whether more run. A job with a label is in the lane of its
-- label, and not counted.
WITH RECURSIVE place (queue, lane, found) AS (
    SELECT :queue, 'share:' || :share, 0
    UNION ALL
    SELECT CASE WHEN place.lane IS NOT NULL THEN place.queue
                ELSE (SELECT job.queue
                      FROM fencerow.jobs AS job
                      WHERE job.state = 'queued' AND job.queue > place.queue
                      ORDER BY job.queue
                      LIMIT 1) END,
           CASE WHEN place.lane IS NULL THEN 'share:'
                ELSE (SELECT min((SELECT job.lane
                                  FROM fencerow.jobs AS job
                                  WHERE job.queue = place.queue AND job.priority = level.priority AND job.state = 'queued'
                                    AND job.lane > place.lane AND job.lane < 'share;'
                                  ORDER BY job.lane
                                  LIMIT 1))
                      FROM {{priorities of its queue}} AS level) END,
           place.found + COALESCE(place.lane > 'share:', 0)
    FROM place
    WHERE place.queue IS NOT NULL AND place.found <= :limit
),
running AS MATERIALIZED (
    SELECT job.queue, job.share
    FROM fencerow.jobs AS job
    WHERE job.state = 'running'
    ORDER BY job.holder
    LIMIT :most
),
named AS (
    SELECT place.queue, substr(place.lane, 7) AS share FROM place WHERE place.lane > 'share:'
    UNION
    SELECT running.queue, running.share FROM running WHERE running.share IS NOT NULL
    UNION
    SELECT given.queue, given.share FROM fencerow.shares AS given
),
shown AS (
    SELECT named.queue, named.share, 'share:' || named.share AS lane
    FROM named
    WHERE (named.queue, named.share) > (:queue, :share)
    ORDER BY named.queue, named.share
    LIMIT :limit
)
SELECT place.queue, place.share, COALESCE(known.weight, 1),
       (SELECT COALESCE(sum((SELECT count(*)
                             FROM (SELECT 1
                                   FROM fencerow.jobs AS job
                                   WHERE job.queue = place.queue AND job.priority = level.priority
                                     AND job.state = 'queued' AND job.lane = place.lane AND place.share > ''
                                   LIMIT :most))), 0)
        FROM {{priorities of its queue}} AS level),
       (SELECT count(*) FROM running WHERE running.queue = place.queue AND running.share = place.share),
       (SELECT min((SELECT job.run_at
                    FROM fencerow.jobs AS job
                    WHERE job.queue = place.queue AND job.priority = level.priority
                      AND job.state = 'queued' AND job.lane = place.lane AND place.share > ''
                    ORDER BY job.run_at
                    LIMIT 1))
        FROM {{priorities of its queue}} AS level),
       (SELECT count(*) FROM running) = :most
FROM shown AS place
LEFT JOIN fencerow.shares AS known ON known.queue = place.queue AND known.share = place.share
ORDER BY place.queue, place.share;
