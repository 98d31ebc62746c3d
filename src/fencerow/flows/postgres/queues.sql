-- Whose a flow is.

-- name: flow_queues
-- The queues in which the jobs of a flow are or ended; of one that is gone the name of its job instead.
SELECT DISTINCT job.queue, CASE WHEN job.id IS NULL THEN member.job_name END
FROM fencerow.flow_jobs AS member
LEFT JOIN fencerow.all_jobs AS job ON job.id = member.job_id
WHERE member.flow_id = CAST(:id AS uuid);
