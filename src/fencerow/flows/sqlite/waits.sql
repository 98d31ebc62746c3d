-- A job that waits for a whole flow inside of its handler: it is suspended, and woken when the flow has ended.

-- at: whose wait is over
-- The flow that it waits for has ended. What an earlier attempt waited for plays no part.
EXISTS (SELECT 1
        FROM fencerow.flow_waits AS wait
        WHERE wait.job_id = job.id
          AND wait.attempt = job.attempt
          AND NOT EXISTS (SELECT 1 FROM fencerow.flows AS flow
            WHERE flow.id = wait.flow_id
              AND (flow.ended_at IS NULL
                   OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL))))

-- name: note_flow_wait
-- Write for which flow the attempt waits. Guard: the fence.
INSERT INTO fencerow.flow_waits (job_id, attempt, flow_id)
SELECT job.id, job.attempt, :flow
FROM fencerow.jobs AS job
WHERE job.id = :id
  AND job.state = 'running'
  AND job.holder = :holder
  AND job.attempt = :attempt
ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, flow_id = excluded.flow_id
RETURNING NOT EXISTS (SELECT 1 FROM fencerow.flows AS flow
            WHERE flow.id = flow_id
              AND (flow.ended_at IS NULL
                   OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL)));

-- name: forget_flow_wait
-- The wait is over, and the handler goes on.
DELETE FROM fencerow.flow_waits WHERE job_id = :id AND attempt = :attempt;

-- name: flow_waits_over
-- Jobs that are suspended and whose flow has ended. No end of a flow need be heard of: they are found until they are woken.
SELECT wait.job_id
FROM fencerow.flow_waits AS wait
JOIN fencerow.jobs AS job ON job.id = wait.job_id
WHERE job.state = 'waiting'
  AND job.gate IS NULL
  AND job.attempt = wait.attempt
  AND NOT EXISTS (SELECT 1 FROM fencerow.flows AS flow
            WHERE flow.id = wait.flow_id
              AND (flow.ended_at IS NULL
                   OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL)))
ORDER BY wait.job_id
LIMIT :limit;

-- name: any_flow_wait_over
-- A job that is suspended and whose flow has ended, if there is one.
SELECT 1
FROM fencerow.flow_waits AS wait
JOIN fencerow.jobs AS job ON job.id = wait.job_id
WHERE job.state = 'waiting'
  AND job.gate IS NULL
  AND job.attempt = wait.attempt
  AND NOT EXISTS (SELECT 1 FROM fencerow.flows AS flow
            WHERE flow.id = wait.flow_id
              AND (flow.ended_at IS NULL
                   OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL)))
LIMIT 1;
