-- Flows for pages that people leave open: each statement reads and returns a bounded part.

-- fragment: a flow of a page
CAST(flow.id AS text), flow.name, flow.jobs, fencerow.us(flow.submitted_at), flow.submitted_by,
fencerow.us(flow.cancel_requested_at), flow.cancel_requested_by, fencerow.us(flow.ended_at),
(SELECT count(*)
 FROM (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL
       LIMIT CAST(:most AS integer)) AS few),
(SELECT count(*)
 FROM (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state = 'failed'
       LIMIT CAST(:most AS integer)) AS few),
(SELECT count(*)
 FROM (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state = 'cancelled'
       LIMIT CAST(:most AS integer)) AS few),
(SELECT fencerow.us(fencerow.now()))

-- fragment: the flows of a page
-- Of those that were looked at: some that are wanted, marked with 0; then the last of them all, marked with how many they were.
SELECT {{a flow of a page}}, 0
FROM (SELECT looked.*
      FROM looked
      WHERE (CAST(:name AS text) IS NULL OR looked.name = CAST(:name AS text))
        AND (CAST(:state AS text) IS NULL
             OR CAST(:state AS text)
                = CASE WHEN looked.ended_at IS NULL
                           OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                                      WHERE member.flow_id = looked.id AND member.state IS NULL) THEN 'running'
                       WHEN EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                                    WHERE member.flow_id = looked.id AND member.state = 'failed') THEN 'failed'
                       WHEN EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                                    WHERE member.flow_id = looked.id AND member.state = 'cancelled') THEN 'cancelled'
                       ELSE 'succeeded' END)
      ORDER BY looked.submitted_at DESC, looked.id DESC
      LIMIT CAST(:limit AS integer)) AS flow
UNION ALL
SELECT {{a flow of a page}}, (SELECT count(*) FROM looked)
FROM (SELECT looked.* FROM looked ORDER BY looked.submitted_at, looked.id LIMIT 1) AS flow

-- name: flows_page
-- Flows before an instant and an id, the newest first, of the next :look that there are.
WITH looked AS MATERIALIZED (
    SELECT newest.*
    FROM fencerow.flows AS newest
    WHERE (newest.submitted_at, newest.id) < (fencerow.at(CAST(:before_us AS bigint)), CAST(:before AS uuid))
    ORDER BY newest.submitted_at DESC, newest.id DESC
    LIMIT CAST(:look AS integer)
)
{{the flows of a page}};

-- name: live_flows_page
-- The same of those that have not ended, along an index of their own; and of those that have and of which a job was revived alone,
-- found among the first :look flows with live jobs, from flow to flow.
WITH RECURSIVE live (flow_id) AS (
    (SELECT member.flow_id FROM fencerow.flow_jobs AS member WHERE member.state IS NULL ORDER BY member.flow_id LIMIT 1)
    UNION ALL
    SELECT (SELECT member.flow_id
            FROM fencerow.flow_jobs AS member
            WHERE member.state IS NULL AND member.flow_id > live.flow_id
            ORDER BY member.flow_id
            LIMIT 1)
    FROM live
    WHERE live.flow_id IS NOT NULL
),
looked AS MATERIALIZED (
    SELECT newest.*
    FROM fencerow.flows AS newest
    WHERE (newest.submitted_at, newest.id) < (fencerow.at(CAST(:before_us AS bigint)), CAST(:before AS uuid))
      AND (newest.ended_at IS NULL OR newest.id = ANY(ARRAY(SELECT live.flow_id FROM live LIMIT CAST(:look AS integer))))
    ORDER BY newest.submitted_at DESC, newest.id DESC
    LIMIT CAST(:look AS integer)
)
{{the flows of a page}};

-- name: flow_groups
-- How many of the first :look jobs of a flow stand in which state, all together; then by how many stand before them, name and
-- state, the levels in at most so many columns. The last values are how many levels a column has, and how many jobs count as
-- queued because they were not looked at: the flow knows which have ended and which nobody has woken; of the others it looks
-- at :most.
WITH looked AS MATERIALIZED (
    SELECT member.job_id, member.level, member.job_name, member.place, member.state, member.woken_at IS NOT NULL AS woken
    FROM fencerow.flow_jobs AS member
    WHERE member.flow_id = CAST(:id AS uuid)
    ORDER BY member.place
    LIMIT CAST(:look AS integer)
),
awake AS MATERIALIZED (
    SELECT member.job_id, member.level, member.job_name, row_number() OVER (ORDER BY member.place) AS number
    FROM looked AS member
    WHERE member.state IS NULL AND member.woken
),
groups AS MATERIALIZED (
    SELECT standing.level, standing.name, standing.state, count(*) AS jobs
    FROM (SELECT member.level, member.job_name AS name, COALESCE(member.state, 'waiting') AS state
          FROM looked AS member
          WHERE member.state IS NOT NULL OR NOT member.woken
          UNION ALL
          SELECT awake.level, awake.job_name, CASE WHEN awake.number > CAST(:most AS integer) THEN 'queued' ELSE COALESCE(job.state, 'waiting') END
          FROM awake
          LEFT JOIN fencerow.jobs AS job ON job.id = CASE WHEN awake.number <= CAST(:most AS integer) THEN awake.job_id END) AS standing
    GROUP BY standing.level, standing.name, standing.state
),
step AS (
    SELECT max(groups.level) / CAST(:columns AS integer) + 1 AS levels,
           (SELECT count(*) FROM awake WHERE awake.number > CAST(:most AS integer)) AS unseen
    FROM groups
)
SELECT CAST(NULL AS integer) AS place, CAST(NULL AS text) AS name, groups.state, CAST(sum(groups.jobs) AS bigint), step.levels, step.unseen
FROM groups
CROSS JOIN step
GROUP BY groups.state, step.levels, step.unseen
UNION ALL
(SELECT groups.level / step.levels, groups.name, groups.state, CAST(sum(groups.jobs) AS bigint), step.levels, step.unseen
 FROM groups
 CROSS JOIN step
 GROUP BY 1, 2, 3, 5, 6
 ORDER BY 1, 4 DESC, 2, 3
 LIMIT CAST(:limit AS integer));

-- name: ended_flow_jobs_page
-- Jobs of a flow behind a place that ended in one way: the flow knows it, so no job is looked at.
SELECT CAST(member.job_id AS text), member.name, member.job_name, member.place, member.level, member.stage, member.state,
       fencerow.us(member.ended_at), CAST(member.error AS text), NULL, NULL, member.attempt, NULL, NULL
FROM fencerow.flow_jobs AS member
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.place > CAST(:after AS integer)
  AND member.state = CAST(:state AS text)
ORDER BY member.place
LIMIT CAST(:limit AS integer);

-- name: flow_jobs_page
-- Jobs of a flow behind a place, all or those in one state, each behind those it waits for.
SELECT CAST(member.job_id AS text), member.name, member.job_name, member.place, member.level, member.stage,
       COALESCE(member.state, job.state, 'waiting'), fencerow.us(member.ended_at), CAST(member.error AS text),
       fencerow.us(job.run_at), fencerow.us(job.claimed_at), COALESCE(member.attempt, job.attempt), job.queue, job.gate
FROM fencerow.flow_jobs AS member
LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.place > CAST(:after AS integer)
  AND (CAST(:state AS text) IS NULL OR COALESCE(member.state, job.state, 'waiting') = CAST(:state AS text))
ORDER BY member.place
LIMIT CAST(:limit AS integer);

-- name: flow_edges_page
-- For whom these jobs of a flow wait, and how that ended as far as it was told: of each at most so many; how many it waits
-- for, and of how many of these no end was told.
SELECT CAST(edge.job_id AS text), CAST(edge.before_id AS text), before.name, edge.policy, edge.state, edge.jobs, edge.open
FROM (SELECT each.*,
             row_number() OVER (PARTITION BY each.job_id ORDER BY each.state IS NOT NULL, each.before_id) AS place,
             count(*) OVER (PARTITION BY each.job_id) AS jobs,
             count(*) FILTER (WHERE each.state IS NULL) OVER (PARTITION BY each.job_id) AS open
      FROM fencerow.flow_edges AS each
      WHERE each.job_id = ANY(CAST(:ids AS uuid[]))) AS edge
CROSS JOIN LATERAL (SELECT known.name, known.place FROM fencerow.flow_jobs AS known WHERE known.job_id = edge.before_id OFFSET 0) AS before
WHERE edge.place <= CAST(:each AS integer)
ORDER BY before.place
LIMIT CAST(:limit AS integer);

-- name: around_flow
-- What else belongs to a flow: its stages in order, its callbacks, and the jobs that wait for all of it in their handlers.
(SELECT 'stage', CAST(member.job_id AS text), member.name, COALESCE(member.state, job.state, 'waiting'),
        fencerow.us(member.ended_at), CAST(NULL AS text)
 FROM fencerow.flow_jobs AS member
 LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
 WHERE member.flow_id = CAST(:id AS uuid) AND member.stage
 ORDER BY member.place
 LIMIT CAST(:limit AS integer))
UNION ALL
(SELECT 'callback', CAST(callback.job_id AS text), callback.job -> 'template' ->> 'name', callback.outcome, fencerow.us(callback.made_at),
        callback.trouble
 FROM fencerow.flow_callbacks AS callback
 WHERE callback.flow_id = CAST(:id AS uuid)
 ORDER BY callback.outcome, callback.job_id
 LIMIT CAST(:limit AS integer))
UNION ALL
(SELECT 'parent', CAST(job.id AS text), job.name, job.state, fencerow.us(job.claimed_at), CAST(NULL AS text)
 FROM fencerow.flow_waits AS wait
 JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
 WHERE wait.flow_id = CAST(:id AS uuid)
 LIMIT CAST(:limit AS integer));
