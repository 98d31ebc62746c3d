-- Flows for pages that people leave open: each statement reads and returns a bounded part.

-- fragment: a flow of a page
flow.id, flow.name, flow.jobs, flow.submitted_at, flow.submitted_by,
flow.cancel_requested_at, flow.cancel_requested_by, flow.ended_at,
(SELECT count(*)
 FROM (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL LIMIT :most)),
(SELECT count(*)
 FROM (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state = 'failed' LIMIT :most)),
(SELECT count(*)
 FROM (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state = 'cancelled' LIMIT :most)),
fencerow.now()

-- fragment: the flows of a page
-- Of those that were looked at: some that are wanted, marked with 0; then the last of them all, marked with how many they were.
SELECT {{a flow of a page}}, 0
FROM (SELECT looked.*
      FROM looked
      WHERE (:name IS NULL OR looked.name = :name)
        AND (:state IS NULL
             OR :state = CASE WHEN looked.ended_at IS NULL
                                  OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                                             WHERE member.flow_id = looked.id AND member.state IS NULL) THEN 'running'
                              WHEN EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                                           WHERE member.flow_id = looked.id AND member.state = 'failed') THEN 'failed'
                              WHEN EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                                           WHERE member.flow_id = looked.id AND member.state = 'cancelled') THEN 'cancelled'
                              ELSE 'succeeded' END)
      ORDER BY looked.submitted_at DESC, looked.id DESC
      LIMIT :limit) AS flow
UNION ALL
SELECT {{a flow of a page}}, (SELECT count(*) FROM looked)
FROM (SELECT looked.* FROM looked ORDER BY looked.submitted_at, looked.id LIMIT 1) AS flow

-- name: flows_page
-- Flows before an instant and an id, the newest first, of the next :look that there are.
WITH looked AS MATERIALIZED (
    SELECT newest.*
    FROM fencerow.flows AS newest
    WHERE (newest.submitted_at, newest.id) < (:before_us, :before)
    ORDER BY newest.submitted_at DESC, newest.id DESC
    LIMIT :look
)
{{the flows of a page}};

-- name: live_flows_page
-- The same of those that have not ended, along an index of their own; and of those that have and of which a job was revived alone,
-- found among the first :look flows with live jobs, from flow to flow.
WITH RECURSIVE live (flow_id) AS (
    SELECT min(member.flow_id) FROM fencerow.flow_jobs AS member WHERE member.state IS NULL
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
    WHERE (newest.submitted_at, newest.id) < (:before_us, :before)
      AND (newest.ended_at IS NULL OR newest.id IN (SELECT live.flow_id FROM live LIMIT :look))
    ORDER BY newest.submitted_at DESC, newest.id DESC
    LIMIT :look
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
    WHERE member.flow_id = :id
    ORDER BY member.place
    LIMIT :look
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
          SELECT awake.level, awake.job_name, CASE WHEN awake.number > :most THEN 'queued' ELSE COALESCE(job.state, 'waiting') END
          FROM awake
          LEFT JOIN fencerow.jobs AS job ON job.id = CASE WHEN awake.number <= :most THEN awake.job_id END) AS standing
    GROUP BY standing.level, standing.name, standing.state
),
step AS (
    SELECT max(groups.level) / :columns + 1 AS levels, (SELECT count(*) FROM awake WHERE awake.number > :most) AS unseen
    FROM groups
)
SELECT NULL, NULL, groups.state, sum(groups.jobs), step.levels, step.unseen
FROM groups
CROSS JOIN step
GROUP BY groups.state
UNION ALL
SELECT *
FROM (SELECT groups.level / step.levels, groups.name, groups.state, sum(groups.jobs), step.levels, step.unseen
      FROM groups
      CROSS JOIN step
      GROUP BY 1, 2, 3
      ORDER BY 1, 4 DESC, 2, 3
      LIMIT :limit);

-- name: ended_flow_jobs_page
-- Jobs of a flow behind a place that ended in one way: the flow knows it, so no job is looked at.
SELECT member.job_id, member.name, member.job_name, member.place, member.level, member.stage, member.state,
       member.ended_at, member.error, NULL, NULL, member.attempt, NULL, NULL
FROM fencerow.flow_jobs AS member
WHERE member.flow_id = :id
  AND member.place > :after
  AND member.state = :state
ORDER BY member.place
LIMIT :limit;

-- name: flow_jobs_page
-- Jobs of a flow behind a place, all or those in one state, each behind those it waits for.
SELECT member.job_id, member.name, member.job_name, member.place, member.level, member.stage,
       COALESCE(member.state, job.state, 'waiting'), member.ended_at, member.error,
       job.run_at, job.claimed_at, COALESCE(member.attempt, job.attempt), job.queue, job.gate
FROM fencerow.flow_jobs AS member
LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
WHERE member.flow_id = :id
  AND member.place > :after
  AND (:state IS NULL OR COALESCE(member.state, job.state, 'waiting') = :state)
ORDER BY member.place
LIMIT :limit;

-- name: flow_edges_page
-- For whom these jobs of a flow wait, and how that ended as far as it was told: of each at most so many; how many it waits
-- for, and of how many of these no end was told.
SELECT edge.job_id, edge.before_id, before.name, edge.policy, edge.state, edge.jobs, edge.open
FROM (SELECT each.*,
             row_number() OVER (PARTITION BY each.job_id ORDER BY each.state IS NOT NULL, each.before_id) AS place,
             count(*) OVER (PARTITION BY each.job_id) AS jobs,
             count(*) FILTER (WHERE each.state IS NULL) OVER (PARTITION BY each.job_id) AS open
      FROM fencerow.flow_edges AS each
      WHERE each.job_id IN (SELECT value FROM json_each(:ids))) AS edge
JOIN fencerow.flow_jobs AS before ON before.job_id = edge.before_id
WHERE edge.place <= :each
ORDER BY before.place
LIMIT :limit;

-- name: around_flow
-- What else belongs to a flow: its stages in order, its callbacks, and the jobs that wait for all of it in their handlers.
SELECT *
FROM (SELECT 'stage', member.job_id, member.name, COALESCE(member.state, job.state, 'waiting'), member.ended_at, NULL
      FROM fencerow.flow_jobs AS member
      LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
      WHERE member.flow_id = :id AND member.stage = 1
      ORDER BY member.place
      LIMIT :limit)
UNION ALL
SELECT *
FROM (SELECT 'callback', callback.job_id, callback.job ->> '$.template.name', callback.outcome, callback.made_at, callback.trouble
      FROM fencerow.flow_callbacks AS callback
      WHERE callback.flow_id = :id
      ORDER BY callback.outcome, callback.job_id
      LIMIT :limit)
UNION ALL
SELECT *
FROM (SELECT 'parent', job.id, job.name, job.state, job.claimed_at, NULL
      FROM fencerow.flow_waits AS wait
      JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
      WHERE wait.flow_id = :id
      LIMIT :limit);
