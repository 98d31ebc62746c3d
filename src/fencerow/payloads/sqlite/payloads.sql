-- Looking at sealed and signed payloads. Nothing here changes anything.

-- name: packed_keys
-- Under which keys the arguments of live jobs are stored, and how many under each; null: without one. Of at most :look jobs.
SELECT found.key, count(*)
FROM (
    SELECT coalesce(json_extract(read.args, '$."fencerow:sealed".key'), json_extract(read.args, '$."fencerow:signed".key')) AS key
    FROM (SELECT CASE WHEN json_valid(job.args) THEN job.args END AS args FROM fencerow.jobs AS job LIMIT :look) AS read
) AS found
GROUP BY found.key
ORDER BY found.key;

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
