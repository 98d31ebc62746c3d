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
