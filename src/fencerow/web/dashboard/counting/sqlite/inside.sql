-- What wings keep of one job, in one look: its flow, for whom it waits and who waits for it, what it waits for in its run,
-- what it remembers, and the signals that were sent to it.

-- name: inside_job
-- Rows of several kinds, of each a few: the clock first. The values are kind, id, name, text, state, place, attempt, instant,
-- until, seconds, data, size. Data longer than :bytes is not returned.
SELECT 'clock', NULL, NULL, NULL, NULL, NULL, NULL, fencerow.now(), NULL, NULL, NULL, NULL
UNION ALL
SELECT 'flow', member.flow_id, flow.name, member.name, NULL, member.place, NULL, NULL, NULL, NULL, NULL, flow.jobs
FROM fencerow.flow_jobs AS member
JOIN fencerow.flows AS flow ON flow.id = member.flow_id
WHERE member.job_id = :id
UNION ALL
SELECT 'callback', callback.flow_id, flow.name, callback.outcome, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM fencerow.flow_callbacks AS callback
JOIN fencerow.flows AS flow ON flow.id = callback.flow_id
WHERE callback.job_id = :id
UNION ALL
SELECT 'within', wait.flow_id, flow.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, flow.jobs
FROM fencerow.flow_waits AS wait
JOIN fencerow.flows AS flow ON flow.id = wait.flow_id
JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
WHERE wait.job_id = :id
UNION ALL
SELECT 'before', edge.before_id, before.name, edge.policy, edge.state, before.place, NULL, NULL, NULL, NULL, NULL, edge.open
FROM (SELECT few.before_id, few.policy, few.state, count(*) FILTER (WHERE few.state IS NULL) OVER () AS open
      FROM fencerow.flow_edges AS few
      WHERE few.job_id = :id
      ORDER BY few.state IS NOT NULL, few.before_id
      LIMIT :near) AS edge
JOIN fencerow.flow_jobs AS before ON before.job_id = edge.before_id
UNION ALL
SELECT 'behind', edge.job_id, behind.name, edge.policy, behind.state, behind.place, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT few.job_id, few.policy
      FROM fencerow.flow_edges AS few
      WHERE few.before_id = :id
      ORDER BY few.job_id
      LIMIT :near) AS edge
JOIN fencerow.flow_jobs AS behind ON behind.job_id = edge.job_id
UNION ALL
SELECT *
FROM (SELECT 'wait', NULL, wait.name, wait.signal, NULL, NULL, wait.attempt, wait.since, wait.until, NULL, NULL, NULL
      FROM fencerow.job_waits AS wait
      JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
      WHERE wait.job_id = :id AND job.state = 'waiting' AND job.gate IS NULL
      ORDER BY wait.until IS NULL, wait.until, wait.name
      LIMIT :near)
UNION ALL
SELECT 'step', NULL, step.name, step.kind, NULL, step.seq, step.attempt, step.at, NULL, step.took_s,
       CASE WHEN length(CAST(step.result AS BLOB)) <= :bytes THEN step.result END, length(CAST(step.result AS BLOB))
FROM (SELECT few.*
      FROM fencerow.job_steps AS few
      WHERE few.job_id = :id AND few.seq > :after
      ORDER BY few.seq, few.name
      LIMIT :limit) AS step
UNION ALL
SELECT 'signal', sent.id, sent.name, sent.sent_by, sent.taken_as, sent.seq, NULL, sent.sent_at, NULL, NULL,
       CASE WHEN length(CAST(sent.data AS BLOB)) <= :bytes THEN sent.data END, length(CAST(sent.data AS BLOB))
FROM (SELECT few.*
      FROM fencerow.job_signals AS few
      WHERE few.job_id = :id
      ORDER BY few.taken_as IS NOT NULL, few.seq DESC
      LIMIT :near) AS sent;
