-- What a bulk action means: counted in short looks, so that no look reads much at once, and the rows of a choice.

-- name: counted_matching
-- Of the next :portion jobs below an id, by state: how many match and were submitted by :at, how many were looked at,
-- and the lowest id among these. A filter that is null lets all pass.
SELECT job.state,
       count(*) FILTER (WHERE (CAST(:queue AS text) IS NULL OR job.queue = :queue)
                          AND (CAST(:name AS text) IS NULL OR job.name = :name)
                          AND (CAST(:states AS text[]) IS NULL OR job.state = ANY(CAST(:states AS text[])))
                          AND (CAST(:scope AS text) IS NULL OR job.scope = :scope)
                          AND (CAST(:key AS text) IS NULL OR job.key = :key)
                          AND fencerow.us(job.submitted_at) <= CAST(:at AS bigint)
                          AND (CAST(:tags AS jsonb) IS NULL
                               OR job.tags IS NOT NULL AND CAST(job.tags AS jsonb) @> CAST(:tags AS jsonb))
                          AND (CAST(:metadata AS jsonb) IS NULL
                               OR job.metadata IS NOT NULL
                                  AND CAST(job.metadata AS jsonb) @> CAST(:metadata AS jsonb))),
       count(*), min(CAST(job.id AS text) COLLATE "C")
FROM (SELECT one.id, one.queue, one.name, one.state, one.scope, one.key, one.tags, one.metadata, one.submitted_at
      FROM fencerow.all_jobs AS one
      WHERE one.id < CAST(:below AS uuid) AND one.id >= CAST(:lowest AS uuid)
      ORDER BY one.id DESC
      LIMIT CAST(:portion AS integer)) AS job
GROUP BY job.state;

-- name: chosen_jobs
-- The rows that somebody chose, live and finished, without what is large in them.
SELECT CAST(job.id AS text), job.name, job.queue, job.key, job.state, fencerow.us(job.submitted_at), fencerow.us(job.revived_at),
       fencerow.us(job.ended_at)
FROM fencerow.all_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
ORDER BY job.id DESC;
