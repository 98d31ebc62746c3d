-- What a bulk action means: counted in short looks, so that no look keeps a writer waiting, and the rows of a choice.

-- name: counted_matching
-- Of the next :portion jobs below an id, by state: how many match and were submitted by :at, how many were looked at,
-- and the lowest id among these. A filter that is null lets all pass.
SELECT job.state,
       count(*) FILTER (WHERE (:queue IS NULL OR job.queue = :queue)
                          AND (:name IS NULL OR job.name = :name)
                          AND (:states IS NULL OR job.state IN (SELECT value FROM json_each(:states)))
                          AND (:scope IS NULL OR job.scope = :scope)
                          AND (:key IS NULL OR job.key = :key)
                          AND job.submitted_at <= :at
                          AND NOT EXISTS (SELECT 1
                                          FROM json_each(:tags) AS wanted
                                          WHERE NOT EXISTS (
                                                SELECT 1
                                                FROM json_each(CASE WHEN json_valid(job.tags) THEN job.tags END) AS tag
                                                WHERE tag.value = wanted.value))
                          AND NOT EXISTS (SELECT 1
                                          FROM json_each(:metadata) AS wanted
                                          WHERE NOT EXISTS (
                                                SELECT 1
                                                FROM json_each(CASE WHEN json_valid(job.metadata)
                                                                    THEN job.metadata END) AS field
                                                WHERE field.key = wanted.key
                                                  AND field.atom IS wanted.atom
                                                  AND replace(field.type, 'integer', 'real')
                                                      = replace(wanted.type, 'integer', 'real')))),
       count(*), min(job.id)
FROM (SELECT live.id, live.queue, live.name, live.state, live.scope, live.key, live.tags, live.metadata, live.submitted_at
      FROM fencerow.jobs AS live
      WHERE live.id < :below AND live.id >= :lowest
      UNION ALL
      SELECT ended.id, ended.queue, ended.name, ended.state, ended.scope, ended.key, ended.tags, ended.metadata,
             ended.submitted_at
      FROM fencerow.finished_jobs AS ended
      WHERE ended.id < :below AND ended.id >= :lowest
      ORDER BY 1 DESC
      LIMIT :portion) AS job
GROUP BY job.state;

-- name: chosen_jobs
-- The rows that somebody chose, live and finished, without what is large in them.
SELECT job.id, job.name, job.queue, job.key, job.state, job.submitted_at, job.revived_at, job.ended_at
FROM fencerow.all_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
ORDER BY job.id DESC;
