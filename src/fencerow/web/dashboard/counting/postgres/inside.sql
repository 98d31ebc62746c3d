-- What wings keep of one job, in one look: its flow, for whom it waits and who waits for it, what it waits for in its run,
-- what it remembers, and the signals that were sent to it.

-- name: inside_job
-- Rows of several kinds, of each a few: the clock first. The values are kind, id, name, text, state, place, attempt, instant,
-- until, seconds, data, size. Data longer than :bytes is not returned.
SELECT 'clock', CAST(NULL AS text), CAST(NULL AS text), CAST(NULL AS text), CAST(NULL AS text), CAST(NULL AS bigint),
       CAST(NULL AS bigint), (SELECT fencerow.us(fencerow.now())), CAST(NULL AS bigint), CAST(NULL AS double precision),
       CAST(NULL AS text), CAST(NULL AS bigint)
UNION ALL
SELECT 'flow', CAST(member.flow_id AS text), flow.name, member.name, NULL, member.place, NULL, NULL, NULL, NULL, NULL, flow.jobs
FROM fencerow.flow_jobs AS member
JOIN fencerow.flows AS flow ON flow.id = member.flow_id
WHERE member.job_id = CAST(:id AS uuid)
UNION ALL
SELECT 'callback', CAST(callback.flow_id AS text), flow.name, callback.outcome, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM fencerow.flow_callbacks AS callback
JOIN fencerow.flows AS flow ON flow.id = callback.flow_id
WHERE callback.job_id = CAST(:id AS uuid)
UNION ALL
SELECT 'within', CAST(wait.flow_id AS text), flow.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, flow.jobs
FROM fencerow.flow_waits AS wait
JOIN fencerow.flows AS flow ON flow.id = wait.flow_id
JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
WHERE wait.job_id = CAST(:id AS uuid)
UNION ALL
(SELECT 'before', CAST(edge.before_id AS text), before.name, edge.policy, edge.state, before.place, NULL, NULL, NULL, NULL, NULL,
        edge.open
 FROM (SELECT few.before_id, few.policy, few.state, count(*) FILTER (WHERE few.state IS NULL) OVER () AS open
       FROM fencerow.flow_edges AS few
       WHERE few.job_id = CAST(:id AS uuid)
       ORDER BY few.state IS NOT NULL, few.before_id
       LIMIT CAST(:near AS integer)) AS edge
 JOIN fencerow.flow_jobs AS before ON before.job_id = edge.before_id)
UNION ALL
(SELECT 'behind', CAST(edge.job_id AS text), behind.name, edge.policy, behind.state, behind.place, NULL, NULL, NULL, NULL, NULL,
        NULL
 FROM (SELECT few.job_id, few.policy
       FROM fencerow.flow_edges AS few
       WHERE few.before_id = CAST(:id AS uuid)
       ORDER BY few.job_id
       LIMIT CAST(:near AS integer)) AS edge
 JOIN fencerow.flow_jobs AS behind ON behind.job_id = edge.job_id)
UNION ALL
(SELECT 'wait', NULL, wait.name, wait.signal, NULL, NULL, wait.attempt, fencerow.us(wait.since), fencerow.us(wait.until), NULL,
        NULL, NULL
 FROM fencerow.job_waits AS wait
 JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
 WHERE wait.job_id = CAST(:id AS uuid) AND job.state = 'waiting' AND job.gate IS NULL
 ORDER BY wait.until NULLS LAST, wait.name
 LIMIT CAST(:near AS integer))
UNION ALL
(SELECT 'step', NULL, step.name, step.kind, NULL, step.seq, step.attempt, fencerow.us(step.at), NULL, step.took_s,
        CASE WHEN octet_length(CAST(step.result AS text)) <= CAST(:bytes AS integer) THEN CAST(step.result AS text) END,
        octet_length(CAST(step.result AS text))
 FROM (SELECT few.*
       FROM fencerow.job_steps AS few
       WHERE few.job_id = CAST(:id AS uuid) AND few.seq > CAST(:after AS integer)
       ORDER BY few.seq, few.name
       LIMIT CAST(:limit AS integer)) AS step)
UNION ALL
(SELECT 'signal', CAST(sent.id AS text), sent.name, sent.sent_by, sent.taken_as, sent.seq, NULL, fencerow.us(sent.sent_at), NULL,
        NULL,
        CASE WHEN octet_length(CAST(sent.data AS text)) <= CAST(:bytes AS integer) THEN CAST(sent.data AS text) END,
        octet_length(CAST(sent.data AS text))
 FROM (SELECT few.*
       FROM fencerow.job_signals AS few
       WHERE few.job_id = CAST(:id AS uuid)
       ORDER BY few.taken_as IS NOT NULL, few.seq DESC
       LIMIT CAST(:near AS integer)) AS sent);
