-- Whose a flow is: of who may see all queues that its jobs and callbacks were submitted to, and all in which its jobs are.

-- fragment: in the list
-- A flow before one that was submitted then; of this name, or of any; none of its jobs is in, or ended in, another queue.
(flow.submitted_at, flow.id) < (fencerow.at(CAST(:before_us AS bigint)), CAST(:before AS uuid))
      AND (CAST(:live AS integer) = 0
           OR flow.ended_at IS NULL
           OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL))
      AND (CAST(:flow AS text) IS NULL OR flow.name = CAST(:flow AS text))
      AND NOT EXISTS (SELECT 1
                      FROM fencerow.flow_jobs AS member
                      JOIN fencerow.all_jobs AS job ON job.id = member.job_id
                      WHERE member.flow_id = flow.id AND job.queue <> ALL(CAST(:queues AS text[])))

-- name: flow_queues
-- The queues of a flow: to which it was submitted, and in which its jobs are or ended.
SELECT unnest(flow.queues) FROM fencerow.flows AS flow WHERE flow.id = CAST(:id AS uuid)
UNION
SELECT job.queue
FROM fencerow.flow_jobs AS member
JOIN fencerow.all_jobs AS job ON job.id = member.job_id
WHERE member.flow_id = CAST(:id AS uuid);

-- name: list_flows_within
-- Flows of which all is within these queues, the newest first. It goes from one list of queues to the next by the index,
-- beginning with those that begin with a queue of these, and of each list that is within them it takes the newest: so the
-- flows of others are not passed over one by one. Lists are told apart by a hash of 64 bits, and of each flow the list itself is compared.
WITH RECURSIVE listed (first, queues) AS (
    SELECT own.name,
           (SELECT flow.queues FROM fencerow.flows AS flow
            WHERE flow.queues[1] = own.name
            ORDER BY hash_array_extended(flow.queues, 0) LIMIT 1)
    FROM unnest(CAST(:queues AS text[])) AS own (name)
    UNION ALL
    SELECT listed.first,
           (SELECT flow.queues FROM fencerow.flows AS flow
            WHERE flow.queues[1] = listed.first
              AND hash_array_extended(flow.queues, 0) > hash_array_extended(listed.queues, 0)
            ORDER BY hash_array_extended(flow.queues, 0) LIMIT 1)
    FROM listed
    WHERE listed.queues IS NOT NULL
)
SELECT {{columns of a flow}}
FROM listed
CROSS JOIN LATERAL (
    SELECT flow.*
    FROM fencerow.flows AS flow
    WHERE flow.queues[1] = listed.first
      AND hash_array_extended(flow.queues, 0) = hash_array_extended(listed.queues, 0)
      AND {{in the list}}
    ORDER BY flow.submitted_at DESC, flow.id DESC
    LIMIT CAST(:limit AS integer)
) AS flow
WHERE listed.queues <@ CAST(:queues AS text[])
  AND flow.queues <@ CAST(:queues AS text[])
ORDER BY flow.submitted_at DESC, flow.id DESC
LIMIT CAST(:limit AS integer);
