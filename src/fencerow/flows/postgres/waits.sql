-- A job that waits for a whole flow inside of its handler: it is suspended, and woken when the flow has ended.

-- fragment: flow has ended
-- All of it, or it is gone. Jobs that were revived alone have not ended. Each flow is looked up (OFFSET 0), whatever the planner knows.
NOT EXISTS (SELECT 1 FROM fencerow.flows AS flow
            WHERE flow.id = wait.flow_id
              AND (flow.ended_at IS NULL
                   OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL OFFSET 0))
            OFFSET 0)

-- at: whose wait is over
-- The flow that it waits for has ended. What an earlier attempt waited for plays no part.
EXISTS (SELECT 1
        FROM fencerow.flow_waits AS wait
        WHERE wait.job_id = job.id
          AND wait.attempt = job.attempt
          AND NOT EXISTS (SELECT 1 FROM fencerow.flows AS flow
            WHERE flow.id = wait.flow_id
              AND (flow.ended_at IS NULL
                   OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL OFFSET 0))
            OFFSET 0)
        OFFSET 0)

-- name: note_flow_wait
-- Write for which flow the attempt waits. Guard: the fence.
WITH held AS (
    SELECT job.id, job.attempt
    FROM fencerow.jobs AS job
    WHERE job.id = CAST(:id AS uuid)
      AND job.state IS NOT DISTINCT FROM 'running'
      AND job.holder = CAST(:holder AS uuid)
      AND job.attempt = CAST(:attempt AS bigint)
    FOR SHARE
)
INSERT INTO fencerow.flow_waits AS wait (job_id, attempt, flow_id)
SELECT held.id, held.attempt, CAST(:flow AS uuid) FROM held
ON CONFLICT (job_id) DO UPDATE SET attempt = EXCLUDED.attempt, flow_id = EXCLUDED.flow_id
RETURNING {{flow has ended}};

-- name: forget_flow_wait
-- The wait is over, and the handler goes on.
DELETE FROM fencerow.flow_waits AS wait
WHERE wait.job_id = CAST(:id AS uuid)
  AND wait.attempt = CAST(:attempt AS bigint);

-- name: flow_waits_over
-- Jobs that are suspended and whose flow has ended. No end of a flow need be heard of: they are found until they are woken.
-- They are locked here, so that many which a stranger has locked hide no other.
SELECT CAST(wait.job_id AS text)
FROM fencerow.flow_waits AS wait
JOIN fencerow.jobs AS job ON job.id = wait.job_id
WHERE job.state = 'waiting'
  AND job.gate IS NULL
  AND job.attempt = wait.attempt
  AND {{flow has ended}}
ORDER BY wait.job_id
LIMIT CAST(:limit AS integer)
FOR UPDATE OF job SKIP LOCKED;

-- name: any_flow_wait_over
-- A job that is suspended and whose flow has ended, if there is one. Nothing is locked: one that is just being woken counts.
SELECT 1
FROM fencerow.flow_waits AS wait
JOIN fencerow.jobs AS job ON job.id = wait.job_id
WHERE job.state = 'waiting'
  AND job.gate IS NULL
  AND job.attempt = wait.attempt
  AND {{flow has ended}}
LIMIT 1;
