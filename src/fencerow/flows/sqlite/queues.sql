-- Whose a flow is: of who may see all queues that its jobs and callbacks were submitted to, and all in which its jobs are.

-- fragment: in the list
-- A flow before one that was submitted then; of this name, or of any; none of its jobs is in, or ended in, another queue.
(near.submitted_at, near.id) < (:before_us, :before)
      AND (:live = 0
           OR near.ended_at IS NULL
           OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = near.id AND member.state IS NULL))
      AND (:flow IS NULL OR near.name = :flow)
      AND NOT EXISTS (SELECT 1
                      FROM fencerow.flow_jobs AS member
                      JOIN fencerow.all_jobs AS job ON job.id = member.job_id
                      WHERE member.flow_id = near.id AND job.queue NOT IN (SELECT value FROM json_each(:queues)))

-- name: flow_queues
-- The queues of a flow: to which it was submitted, and in which its jobs are or ended.
SELECT queue.value FROM fencerow.flows AS flow, json_each(flow.queues) AS queue WHERE flow.id = :id
UNION
SELECT job.queue
FROM fencerow.flow_jobs AS member
JOIN fencerow.all_jobs AS job ON job.id = member.job_id
WHERE member.flow_id = :id;

-- name: list_flows_within
-- Flows of which all is within these queues, the newest first. It goes from one list of queues to the next by the index,
-- beginning with those that begin with a queue of these, and of each list that is within them it takes the newest: so the
-- flows of others are not passed over one by one.
WITH RECURSIVE listed (first, queues) AS (
    SELECT own.value,
           (SELECT flow.queues FROM fencerow.flows AS flow WHERE flow.queues >= '[' || json_quote(own.value)
            ORDER BY flow.queues LIMIT 1)
    FROM json_each(:queues) AS own
    UNION ALL
    SELECT listed.first,
           (SELECT flow.queues FROM fencerow.flows AS flow WHERE flow.queues > listed.queues ORDER BY flow.queues LIMIT 1)
    FROM listed
    WHERE json_extract(listed.queues, '$[0]') = listed.first
)
SELECT {{columns of a flow}}
FROM listed
CROSS JOIN fencerow.flows AS flow
WHERE json_extract(listed.queues, '$[0]') = listed.first
  AND NOT EXISTS (SELECT 1 FROM json_each(listed.queues) AS queue
                  WHERE queue.value NOT IN (SELECT value FROM json_each(:queues)))
  AND flow.id IN (
    SELECT near.id
    FROM fencerow.flows AS near
    WHERE near.queues = listed.queues
      AND {{in the list}}
    ORDER BY near.submitted_at DESC, near.id DESC
    LIMIT :limit)
ORDER BY flow.submitted_at DESC, flow.id DESC
LIMIT :limit;
