-- Looking at sealed and signed payloads. Nothing here changes anything.

-- name: packed_keys
-- Under which keys payloads are stored, by the place where they lie, and how many; null: without one. Of at most :look rows
-- of each place. These are all places: a payload outside the database has its key in the reference to it, and a schedule
-- has its arguments as a text in its definition.
SELECT found.place, found.key, count(*)
FROM (
    SELECT lies.place, coalesce(
        lies.payload -> 'fencerow:sealed' ->> 'key', lies.payload -> 'fencerow:signed' ->> 'key',
        lies.payload -> 'fencerow:outside' ->> 'key'
    ) AS key
    FROM (
        (SELECT 'live jobs' AS place, job.args AS payload FROM fencerow.jobs AS job LIMIT :look)
        UNION ALL
        (SELECT 'finished jobs', job.args FROM fencerow.finished_jobs AS job LIMIT :look)
        UNION ALL
        (SELECT 'results', job.result FROM fencerow.finished_jobs AS job WHERE job.result IS NOT NULL LIMIT :look)
        UNION ALL
        (SELECT 'handovers', handover.result FROM fencerow.handovers AS handover WHERE handover.result IS NOT NULL LIMIT :look)
        UNION ALL
        (SELECT 'events', event.data -> 'result' FROM fencerow.events AS event WHERE event.topic = 'job.succeeded' LIMIT :look)
    ) AS lies
    UNION ALL
    (SELECT 'schedules', substring(schedule.definition FROM 'fencerow:(?:sealed|signed)\\":\{\\"key\\":\\"([^\\]+)')
     FROM fencerow.schedules AS schedule LIMIT :look)
) AS found
GROUP BY found.place, found.key
ORDER BY found.place, found.key;

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
