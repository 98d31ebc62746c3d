-- Looks at flows. None locks or changes anything.

-- fragment: columns of a flow
flow.id, flow.name, flow.jobs, flow.submitted_at, flow.submitted_by,
flow.cancel_requested_at, flow.cancel_requested_by, flow.ended_at,
(SELECT count(*) FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL),
(SELECT count(*) FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state = 'failed'),
(SELECT count(*) FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state = 'cancelled'),
fencerow.now()

-- fragment: columns of a job in a flow
member.job_id, member.name, member.job_name, member.place, member.level, member.stage,
COALESCE(member.state, job.state, 'waiting'), member.ended_at, member.error,
member.result

-- fragment: flows with live jobs
-- Of which a job has not ended, from flow to flow. A flow that has ended is among them where somebody revived a job of it alone.
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
)
SELECT live.flow_id FROM live WHERE live.flow_id IS NOT NULL

-- name: read_flow
-- A flow as it stands.
SELECT {{columns of a flow}} FROM fencerow.flows AS flow WHERE flow.id = :id;

-- name: list_flows
-- Flows, the newest first, before one that was submitted then; of this name, or of any.
SELECT {{columns of a flow}}
FROM fencerow.flows AS flow
WHERE (flow.submitted_at, flow.id) < (:before_us, :before)
  AND (:live = 0 OR flow.ended_at IS NULL OR flow.id IN ({{flows with live jobs}}))
  AND (:flow IS NULL OR flow.name = :flow)
ORDER BY flow.submitted_at DESC, flow.id DESC
LIMIT :limit;

-- name: flow_of_job
-- The flow to which a job belongs, as one of its jobs or as a callback.
SELECT member.flow_id FROM fencerow.flow_jobs AS member WHERE member.job_id = :id
UNION ALL
SELECT callback.flow_id FROM fencerow.flow_callbacks AS callback WHERE callback.job_id = :id;

-- name: count_flow_jobs
-- How many jobs of a flow stand in which state.
SELECT COALESCE(member.state, job.state, 'waiting'), count(*)
FROM fencerow.flow_jobs AS member
LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
WHERE member.flow_id = :id
GROUP BY 1;

-- name: read_flow_jobs
-- Jobs of a flow, behind a place, each behind those it waits for.
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_jobs AS member
LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
WHERE member.flow_id = :id
  AND member.place > :after
ORDER BY member.place
LIMIT :limit;

-- name: read_flow_job
-- One job of a flow by its name there.
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_jobs AS member
LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
WHERE member.flow_id = :id
  AND member.name = :member;

-- name: read_newest_stage
-- The last stage of a flow that has a result.
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_jobs AS member
LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
WHERE member.flow_id = :id
  AND member.stage = 1
  AND member.state = 'succeeded'
ORDER BY member.place DESC
LIMIT 1;

-- name: read_flow_inputs
-- Those for which a job waited, as they ended; of a callback all jobs of its flow.
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_edges AS edge
JOIN fencerow.flow_jobs AS member ON member.job_id = edge.before_id
LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
WHERE edge.job_id = :id
UNION ALL
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_callbacks AS callback
JOIN fencerow.flow_jobs AS member ON member.flow_id = callback.flow_id
LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id AND member.state IS NULL
WHERE callback.job_id = :id
ORDER BY 4;

-- name: read_flow_edges
-- For whom these jobs of a flow wait.
SELECT edge.job_id, before.name, edge.policy
FROM fencerow.flow_edges AS edge
JOIN fencerow.flow_jobs AS before ON before.job_id = edge.before_id
WHERE edge.job_id IN (SELECT value FROM json_each(:ids))
ORDER BY before.place;

-- name: read_flow_callbacks
-- The callbacks of a flow: which, when, and whether it was made.
SELECT callback.job_id, callback.outcome, callback.job ->> 'template', callback.made_at,
       callback.trouble
FROM fencerow.flow_callbacks AS callback
WHERE callback.flow_id = :id
ORDER BY callback.outcome, callback.job_id;

-- name: count_flow_troubles
-- How many flows have not ended, or have jobs that were revived alone, and how many ends were told to nobody for so long.
SELECT (SELECT count(*) FROM (SELECT 1 FROM fencerow.flows AS flow WHERE flow.ended_at IS NULL LIMIT :limit))
       + (SELECT count(*)
          FROM ({{flows with live jobs}} LIMIT :limit) AS few
          JOIN fencerow.flows AS flow ON flow.id = few.flow_id
          WHERE flow.ended_at IS NOT NULL),
       (SELECT count(*)
        FROM (SELECT member.ended_at
              FROM fencerow.flow_jobs AS member
              WHERE member.state IS NOT NULL AND member.told = 0
              LIMIT :limit) AS few
        WHERE few.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER));

-- name: stuck_flows
-- Flows with jobs that wait, of which nobody runs or is to run, and no end is to be told.
SELECT flow.id, flow.name
FROM (SELECT open.* FROM fencerow.flows AS open WHERE open.ended_at IS NULL
      ORDER BY open.submitted_at, open.id LIMIT :look) AS flow
WHERE flow.submitted_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
  AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                  WHERE member.flow_id = flow.id AND member.state IS NOT NULL AND member.told = 0)
  AND NOT EXISTS (SELECT 1
                  FROM fencerow.flow_jobs AS member
                  LEFT JOIN fencerow.jobs AS job ON job.id = member.job_id
                  WHERE member.flow_id = flow.id
                    AND member.state IS NULL
                    AND (member.woken_at IS NOT NULL OR job.id IS NULL))
ORDER BY flow.submitted_at
LIMIT :limit;

-- name: refused_callbacks
-- Callbacks that could not be submitted.
SELECT callback.job_id, callback.trouble
FROM fencerow.flow_callbacks AS callback
WHERE callback.trouble IS NOT NULL
LIMIT :limit;

-- name: awaited_in_flow
-- For whom a job of a flow still waits, and the flow; or the flow for which it waits inside of its handler, without a name.
SELECT edge.flow_id, before.name
FROM fencerow.flow_edges AS edge
JOIN fencerow.flow_jobs AS before ON before.job_id = edge.before_id
JOIN fencerow.flow_jobs AS member ON member.job_id = edge.job_id
WHERE edge.job_id = :id
  AND edge.state IS NULL
  AND member.woken_at IS NULL
UNION ALL
SELECT wait.flow_id, NULL
FROM fencerow.flow_waits AS wait
JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
WHERE wait.job_id = :id
LIMIT :limit;
