-- Looking at sealed and signed payloads. Nothing here changes anything.

-- name: packed_keys
-- Under which keys payloads are stored, by the place where they lie, and how many; null: without one. Of at most :look rows
-- of each place. These are all places: a payload outside the database has its key in the reference to it, and a schedule
-- has its arguments as a text in its definition.
SELECT found.place, found.key, count(*)
FROM (
    SELECT read.place, coalesce(
        json_extract(read.payload, '$."fencerow:sealed".key'), json_extract(read.payload, '$."fencerow:signed".key'),
        json_extract(read.payload, '$."fencerow:outside".key')
    ) AS key
    FROM (
        SELECT lies.place, CASE WHEN json_valid(lies.payload) THEN lies.payload END AS payload
        FROM (
            SELECT 'live jobs' AS place, live.args AS payload FROM (SELECT job.args FROM fencerow.jobs AS job LIMIT :look) AS live
            UNION ALL
            SELECT 'finished jobs', done.args FROM (SELECT job.args FROM fencerow.finished_jobs AS job LIMIT :look) AS done
            UNION ALL
            SELECT 'results', done.result
            FROM (SELECT job.result FROM fencerow.finished_jobs AS job WHERE job.result IS NOT NULL LIMIT :look) AS done
            UNION ALL
            SELECT 'handovers', ended.result
            FROM (SELECT handover.result FROM fencerow.handovers AS handover WHERE handover.result IS NOT NULL LIMIT :look) AS ended
            UNION ALL
            SELECT 'events', CASE WHEN json_valid(told.data) THEN json_extract(told.data, '$.result') END
            FROM (SELECT event.data FROM fencerow.events AS event WHERE event.topic = 'job.succeeded' LIMIT :look) AS told
            UNION ALL
            SELECT 'schedules', CASE WHEN json_valid(kept.definition) THEN json_extract(kept.definition, '$.work.args') END
            FROM (SELECT schedule.definition FROM fencerow.schedules AS schedule LIMIT :look) AS kept
        ) AS lies
    ) AS read
) AS found
GROUP BY found.place, found.key
ORDER BY found.place, found.key;

-- name: altered_payloads
-- How many jobs failed within the last :age_s because their arguments were not what was packed, and one of them. Among
-- the newest :look failed ones.
SELECT count(*), max(found.id)
FROM (
    SELECT job.id, CASE WHEN json_valid(job.error) THEN job.error END AS error
    FROM fencerow.finished_jobs AS job
    WHERE job.state = 'failed' AND job.ended_at > fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
    ORDER BY job.ended_at DESC
    LIMIT :look
) AS found
WHERE json_extract(found.error, '$.code') = 'payload_altered';

-- name: referred_payloads
-- What the rows of these jobs refer to in the store of large payloads: the id, whether the job is live, and a name for its
-- arguments and its result each, if it has one. A handover keeps a result for longer than its job.
SELECT job.id, 1, CASE WHEN json_valid(job.args) THEN json_extract(job.args, '$."fencerow:outside".name') END, NULL
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT job.id, 0, CASE WHEN json_valid(job.args) THEN json_extract(job.args, '$."fencerow:outside".name') END,
       CASE WHEN json_valid(job.result) THEN json_extract(job.result, '$."fencerow:outside".name') END
FROM fencerow.finished_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT handover.job_id, 0, NULL,
       CASE WHEN json_valid(handover.result) THEN json_extract(handover.result, '$."fencerow:outside".name') END
FROM fencerow.handovers AS handover
WHERE handover.job_id IN (SELECT value FROM json_each(:ids));

-- name: transactions_now
-- It runs in a transaction, which no other that writes is beside: all that were under way before have ended.
SELECT 0, 0;

-- name: database_of_payloads
-- Which database this is, in the names of its objects. A copy of all its files has the same.
SELECT owner.id FROM fencerow.payload_owner AS owner;
