-- Looking at jobs, live and finished together: pages of those that match, counts, timelines, logs.

-- fragment: jobs with progress
-- Live and finished, each with what its attempt said last.
FROM fencerow.all_jobs AS job
LEFT JOIN fencerow.job_progress AS progress ON progress.job_id = job.id AND progress.attempt = job.attempt

-- fragment: filters
-- What a page is of; a filter that is null lets all pass.
(:queue IS NULL OR job.queue = :queue)
  AND (:name IS NULL OR job.name = :name)
  AND (:states IS NULL OR job.state IN (SELECT value FROM json_each(:states)))
  AND (:scope IS NULL OR job.scope = :scope)
  AND (:key IS NULL OR job.key = :key)

-- name: list
-- Jobs that match the filters, the newest id first, a page at a time; before_id is the last id of the page before, and
-- from_id the one where the search ends: what hardly any job has is looked for until there.
-- The ids are merged from both tables in the order of their indexes. (A sort of the view read every job there is.)
-- Of which table jobs can be is said by the caller, from the states that it wants: whoever looks for failed jobs would
-- walk through all live ones first, and find none.
WITH page AS MATERIALIZED (
    SELECT job.id
    FROM fencerow.jobs AS job
    WHERE :live AND {{filters}}
      AND job.id < coalesce(:before_id, 'g') AND job.id >= coalesce(:from_id, '')
    UNION ALL
    SELECT job.id
    FROM fencerow.finished_jobs AS job
    WHERE :finished AND {{filters}}
      AND job.id < coalesce(:before_id, 'g') AND job.id >= coalesce(:from_id, '')
    ORDER BY 1 DESC
    LIMIT :limit
)
SELECT json_object(
           {{all but payloads}}
       )
{{jobs with progress}}
WHERE job.id IN (SELECT page.id FROM page);

-- name: search
-- Jobs that carry all of these tags and metadata and match the filters, as in list. One statement looks at no more
-- than 10,000 jobs that carry any, so that it never keeps a writer waiting for long; when it ends there, a last row
-- with the second column says how far it came.
WITH looked AS MATERIALIZED (
    SELECT job.id, job.queue, job.name, job.state, job.scope, job.key, job.tags, job.metadata
    FROM fencerow.jobs AS job
    WHERE (job.tags IS NOT NULL OR job.metadata IS NOT NULL)
      AND job.id < coalesce(:before_id, 'g') AND job.id >= coalesce(:from_id, '')
    UNION ALL
    SELECT job.id, job.queue, job.name, job.state, job.scope, job.key, job.tags, job.metadata
    FROM fencerow.finished_jobs AS job
    WHERE (job.tags IS NOT NULL OR job.metadata IS NOT NULL)
      AND job.id < coalesce(:before_id, 'g') AND job.id >= coalesce(:from_id, '')
    ORDER BY 1 DESC
    LIMIT 10000
),
matching AS (
    SELECT job.id
    FROM looked AS job
    WHERE {{filters}}
      AND NOT EXISTS (SELECT 1
                      FROM json_each(:tags) AS wanted
                      WHERE NOT EXISTS (SELECT 1
                                        FROM json_each(CASE WHEN json_valid(job.tags) THEN job.tags END) AS tag
                                        WHERE tag.value = wanted.value))
      AND NOT EXISTS (SELECT 1
                      FROM json_each(:metadata) AS wanted
                      WHERE NOT EXISTS (
                            SELECT 1
                            FROM json_each(CASE WHEN json_valid(job.metadata) THEN job.metadata END) AS field
                            WHERE field.key = wanted.key
                              AND field.atom IS wanted.atom
                              AND replace(field.type, 'integer', 'real') = replace(wanted.type, 'integer', 'real')))
    ORDER BY job.id DESC
    LIMIT :limit
)
SELECT json_object(
           {{all but payloads}}
       ), NULL
{{jobs with progress}}
WHERE job.id IN (SELECT matching.id FROM matching)
UNION ALL
SELECT NULL, min(looked.id) FROM looked HAVING count(*) = 10000;

-- name: events
-- What happened to a job beyond its columns, in order.
SELECT note.attempt, note.at, note.kind, note.actor, note.detail
FROM fencerow.job_events AS note
WHERE note.job_id = :id
ORDER BY note.id
LIMIT :limit;

-- name: logs
-- The lines kept with a job, in order.
SELECT note.attempt, note.at, note.level, note.message
FROM fencerow.job_logs AS note
WHERE note.job_id = :id
ORDER BY note.id
LIMIT :limit;

-- name: counts
-- Live jobs by queue, name and state, with the oldest due instant of the queued.
SELECT job.queue, job.name, job.state, count(*), min(job.run_at), fencerow.now()
FROM fencerow.jobs AS job
GROUP BY job.queue, job.name, job.state
ORDER BY job.queue, job.name, job.state;

-- name: finished_counts
-- Finished jobs that are still kept, by queue and state.
SELECT job.queue, job.state, count(*)
FROM fencerow.finished_jobs AS job
GROUP BY job.queue, job.state
ORDER BY job.queue, job.state;

-- name: ahead
-- How many queued jobs of the same queue a claim takes before this one, up to 1,000.
SELECT count(*)
FROM (SELECT 1
      FROM fencerow.jobs AS job, fencerow.jobs AS mine
      WHERE mine.id = :id
        AND job.queue = mine.queue AND job.state = 'queued' AND job.suspect = 0
        AND (job.affinity IS NULL OR job.fell_back_for > job.attempt OR job.lane = mine.lane)
        AND job.run_at <= fencerow.now()
        AND (job.priority > mine.priority
             OR job.priority = mine.priority AND (job.run_at, job.id) < (mine.run_at, mine.id))
      LIMIT 1000) AS before;
