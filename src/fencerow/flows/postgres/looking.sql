-- Looks at flows. None locks or changes anything.

-- fragment: columns of a flow
CAST(flow.id AS text), flow.name, flow.jobs, fencerow.us(flow.submitted_at), flow.submitted_by,
fencerow.us(flow.cancel_requested_at), flow.cancel_requested_by, fencerow.us(flow.ended_at),
(SELECT count(*) FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL),
(SELECT count(*) FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state = 'failed'),
(SELECT count(*) FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state = 'cancelled'),
fencerow.us(fencerow.now())

-- fragment: columns of a job in a flow
CAST(member.job_id AS text), member.name, member.job_name, member.place, member.level, member.stage,
COALESCE(member.state, job.state, 'waiting'), fencerow.us(member.ended_at), CAST(member.error AS text),
CAST(member.result AS text)

-- fragment: flows with live jobs
-- Of which a job has not ended, from flow to flow. A flow that has ended is among them where somebody revived a job of it alone.
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
)
SELECT live.flow_id FROM live WHERE live.flow_id IS NOT NULL

-- fragment: its live job
-- The job of a member that has not ended. It is looked up by its id (OFFSET 0), whatever the planner knows.
LEFT JOIN LATERAL (
    SELECT live.state FROM fencerow.jobs AS live WHERE live.id = member.job_id AND member.state IS NULL OFFSET 0
) AS job ON true

-- name: read_flow
-- A flow as it stands.
SELECT {{columns of a flow}} FROM fencerow.flows AS flow WHERE flow.id = CAST(:id AS uuid);

-- name: list_flows
-- Flows, the newest first, before one that was submitted then; of this name, or of any.
SELECT {{columns of a flow}}
FROM fencerow.flows AS flow
WHERE (flow.submitted_at, flow.id) < (fencerow.at(CAST(:before_us AS bigint)), CAST(:before AS uuid))
  AND (CAST(:live AS integer) = 0 OR flow.ended_at IS NULL OR flow.id = ANY(ARRAY({{flows with live jobs}})))
  AND (CAST(:flow AS text) IS NULL OR flow.name = CAST(:flow AS text))
ORDER BY flow.submitted_at DESC, flow.id DESC
LIMIT CAST(:limit AS integer);

-- name: flow_of_job
-- The flow to which a job belongs, as one of its jobs or as a callback.
SELECT CAST(member.flow_id AS text) FROM fencerow.flow_jobs AS member WHERE member.job_id = CAST(:id AS uuid)
UNION ALL
SELECT CAST(callback.flow_id AS text) FROM fencerow.flow_callbacks AS callback WHERE callback.job_id = CAST(:id AS uuid);

-- name: count_flow_jobs
-- How many jobs of a flow stand in which state.
SELECT COALESCE(member.state, job.state, 'waiting'), count(*)
FROM fencerow.flow_jobs AS member
{{its live job}}
WHERE member.flow_id = CAST(:id AS uuid)
GROUP BY 1;

-- name: read_flow_jobs
-- Jobs of a flow, behind a place, each behind those it waits for.
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_jobs AS member
{{its live job}}
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.place > CAST(:after AS integer)
ORDER BY member.place
LIMIT CAST(:limit AS integer);

-- name: read_flow_job
-- One job of a flow by its name there.
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_jobs AS member
{{its live job}}
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.name = CAST(:member AS text);

-- name: read_newest_stage
-- The last stage of a flow that has a result.
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_jobs AS member
{{its live job}}
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.stage
  AND member.state = 'succeeded'
ORDER BY member.place DESC
LIMIT 1;

-- name: read_flow_inputs
-- Those for which a job waited, as they ended; of a callback all jobs of its flow.
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_edges AS edge
CROSS JOIN LATERAL (SELECT * FROM fencerow.flow_jobs AS known WHERE known.job_id = edge.before_id OFFSET 0) AS member
{{its live job}}
WHERE edge.job_id = CAST(:id AS uuid)
UNION ALL
SELECT {{columns of a job in a flow}}
FROM fencerow.flow_callbacks AS callback
JOIN fencerow.flow_jobs AS member ON member.flow_id = callback.flow_id
{{its live job}}
WHERE callback.job_id = CAST(:id AS uuid)
ORDER BY 4;

-- name: read_flow_edges
-- For whom these jobs of a flow wait.
SELECT CAST(edge.job_id AS text), before.name, edge.policy
FROM fencerow.flow_edges AS edge
CROSS JOIN LATERAL (SELECT known.name, known.place FROM fencerow.flow_jobs AS known WHERE known.job_id = edge.before_id OFFSET 0) AS before
WHERE edge.job_id = ANY(CAST(:ids AS uuid[]))
ORDER BY before.place;

-- name: read_flow_callbacks
-- The callbacks of a flow: which, when, and whether it was made.
SELECT CAST(callback.job_id AS text), callback.outcome, callback.job ->> 'template', fencerow.us(callback.made_at),
       callback.trouble
FROM fencerow.flow_callbacks AS callback
WHERE callback.flow_id = CAST(:id AS uuid)
ORDER BY callback.outcome, callback.job_id;

-- name: count_flow_troubles
-- How many flows have not ended, or have jobs that were revived alone, and how many ends were told to nobody for so long.
SELECT (SELECT count(*) FROM (SELECT 1 FROM fencerow.flows AS flow WHERE flow.ended_at IS NULL LIMIT CAST(:limit AS integer)) AS few)
       + (SELECT count(*)
          FROM ({{flows with live jobs}} LIMIT CAST(:limit AS integer)) AS few
          JOIN fencerow.flows AS flow ON flow.id = few.flow_id
          WHERE flow.ended_at IS NOT NULL),
       (SELECT count(*)
        FROM (SELECT member.ended_at
              FROM fencerow.flow_jobs AS member
              WHERE member.state IS NOT NULL AND NOT member.told
              LIMIT CAST(:limit AS integer)) AS few
        WHERE few.ended_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision)));

-- name: stuck_flows
-- Flows with jobs that wait, of which nobody runs or is to run, and no end is to be told.
SELECT CAST(flow.id AS text), flow.name
FROM (SELECT open.* FROM fencerow.flows AS open WHERE open.ended_at IS NULL
      ORDER BY open.submitted_at, open.id LIMIT CAST(:look AS integer)) AS flow
WHERE flow.submitted_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
  AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                  WHERE member.flow_id = flow.id AND member.state IS NOT NULL AND NOT member.told OFFSET 0)
  AND NOT EXISTS (SELECT 1
                  FROM fencerow.flow_jobs AS member
                  WHERE member.flow_id = flow.id
                    AND member.state IS NULL
                    AND (member.woken_at IS NOT NULL
                         OR NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = member.job_id OFFSET 0))
                  OFFSET 0)
ORDER BY flow.submitted_at
LIMIT CAST(:limit AS integer);

-- name: refused_callbacks
-- Callbacks that could not be submitted.
SELECT CAST(callback.job_id AS text), callback.trouble
FROM fencerow.flow_callbacks AS callback
WHERE callback.trouble IS NOT NULL
LIMIT CAST(:limit AS integer);

-- name: awaited_in_flow
-- For whom a job of a flow still waits, and the flow; or the flow for which it waits inside of its handler, without a name.
SELECT CAST(edge.flow_id AS text), before.name
FROM fencerow.flow_edges AS edge
JOIN fencerow.flow_jobs AS before ON before.job_id = edge.before_id
JOIN fencerow.flow_jobs AS member ON member.job_id = edge.job_id
WHERE edge.job_id = CAST(:id AS uuid)
  AND edge.state IS NULL
  AND member.woken_at IS NULL
UNION ALL
SELECT CAST(wait.flow_id AS text), NULL
FROM fencerow.flow_waits AS wait
JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
WHERE wait.job_id = CAST(:id AS uuid)
LIMIT CAST(:limit AS integer);
