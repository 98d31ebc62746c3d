-- Looking at sealed and signed payloads. Nothing here changes anything.

-- name: packed_keys
-- Under which keys the arguments of live jobs are stored, and how many under each; null: without one. Of at most :look jobs.
SELECT found.key, count(*)
FROM (
    SELECT coalesce(job.args -> 'fencerow:sealed' ->> 'key', job.args -> 'fencerow:signed' ->> 'key') AS key
    FROM fencerow.jobs AS job
    LIMIT :look
) AS found
GROUP BY found.key
ORDER BY found.key;

-- name: altered_payloads
-- How many jobs failed within the last :age_s because their arguments were not what was packed, and one of them. Among
-- the newest :look failed ones.
SELECT count(*), max(CAST(found.id AS text))
FROM (
    SELECT job.id, job.error
    FROM fencerow.finished_jobs AS job
    WHERE job.state = 'failed' AND job.ended_at > (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
    ORDER BY job.ended_at DESC
    LIMIT :look
) AS found
WHERE found.error ->> 'code' = 'payload_altered';

-- name: referred_payloads
-- What the rows of these jobs refer to in the store of large payloads: the id, whether the job is live, and a name for its
-- arguments and its result each, if it has one. A handover keeps a result for longer than its job.
SELECT CAST(job.id AS text), true, job.args -> 'fencerow:outside' ->> 'name', NULL
FROM fencerow.jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
UNION ALL
SELECT CAST(job.id AS text), false, job.args -> 'fencerow:outside' ->> 'name', job.result -> 'fencerow:outside' ->> 'name'
FROM fencerow.finished_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
UNION ALL
SELECT CAST(handover.job_id AS text), false, NULL, handover.result -> 'fencerow:outside' ->> 'name'
FROM fencerow.handovers AS handover
WHERE handover.job_id = ANY(CAST(:ids AS uuid[]));

-- name: transactions_now
-- The first transaction that has not ended, and the number of this one. Whatever had a number before this one has ended at a
-- later look whose first is not below it. (The end of a snapshot would not do: those that run may lie beyond it.)
SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint),
       CAST(CAST(pg_current_xact_id() AS text) AS bigint);

-- name: database_of_payloads
-- Which database this is, in the names of its objects. A copy of all its files has the same.
SELECT CAST(owner.id AS text) FROM fencerow.payload_owner AS owner;
