-- Looking at jobs, live and finished together: pages of those that match, counts, timelines, logs.

-- fragment: jobs with progress
-- Live and finished, each with what its attempt said last.
FROM fencerow.all_jobs AS job
{{progress}}

-- fragment: filters
-- What a page is of; a filter that is null lets all pass.
(CAST(:queue AS text) IS NULL OR job.queue = :queue)
  AND (CAST(:name AS text) IS NULL OR job.name = :name)
  AND (CAST(:states AS text[]) IS NULL OR job.state = ANY(CAST(:states AS text[])))
  AND (CAST(:scope AS text) IS NULL OR job.scope = :scope)
  AND (CAST(:key AS text) IS NULL OR job.key = :key)

-- fragment: between ids
-- Below :before_id and from :from_id on; where one is null, every id is. Both lead into the primary key, also in a kept plan.
job.id < COALESCE(CAST(:before_id AS uuid), CAST('ffffffff-ffff-ffff-ffff-ffffffffffff' AS uuid))
AND job.id >= COALESCE(CAST(:from_id AS uuid), CAST('00000000-0000-0000-0000-000000000000' AS uuid))

-- fragment: carries all
-- The job carries all of the tags and metadata that were asked for.
(CAST(:tags AS jsonb) IS NULL
     OR job.tags IS NOT NULL AND CAST(job.tags AS jsonb) @> CAST(:tags AS jsonb))
AND (CAST(:metadata AS jsonb) IS NULL
     OR job.metadata IS NOT NULL AND CAST(job.metadata AS jsonb) @> CAST(:metadata AS jsonb))

-- name: list
-- Jobs that match the filters, the newest id first, a page at a time; before_id is the last id of the page before, and
-- from_id the one where the search ends: what hardly any job has is looked for until there.
-- Of which table jobs can be is said by the caller, from the states that it wants: whoever looks for failed jobs would
-- walk through all live ones first, and find none.
-- Both halves have columns of the same types: otherwise they are not merged in the order of their ids, and each is sorted whole.
SELECT CAST(json_build_object(
           {{all but payloads}}
       ) AS text)
FROM ((SELECT job.*, fencerow.lane(job)
       FROM fencerow.jobs AS job
       WHERE CAST(:live AS boolean)
         AND {{filters}}
         AND {{between ids}}
       ORDER BY job.id DESC
       LIMIT CAST(:limit AS integer))
      UNION ALL
      (SELECT job.*, CAST('' AS fencerow.job_lane)
       FROM fencerow.finished_jobs AS job
       WHERE CAST(:finished AS boolean)
         AND {{filters}}
         AND {{between ids}}
       ORDER BY job.id DESC
       LIMIT CAST(:limit AS integer))) AS job
{{progress}}
ORDER BY job.id DESC
LIMIT CAST(:limit AS integer);

-- name: search
-- Jobs that carry all of these tags and metadata and match the filters, as in list. The second column is SQLite's.
-- The newest 5,000 jobs are walked first, which fills a page of what is common; what is left is rare enough to be
-- gathered by the indexes and sorted. (In one plain statement the planner took every tag for a common one and
-- walked a million jobs to find one.)
WITH looked AS MATERIALIZED (
    SELECT job.id, job.queue, job.name, job.state, job.scope, job.key, job.tags, job.metadata
    FROM fencerow.all_jobs AS job
    WHERE {{between ids}}
    ORDER BY job.id DESC
    LIMIT 5000
),
near AS MATERIALIZED (
    SELECT job.id
    FROM looked AS job
    WHERE {{filters}}
      AND {{carries all}}
    ORDER BY job.id DESC
    LIMIT CAST(:limit AS integer)
),
far AS MATERIALIZED (
    SELECT job.id
    FROM fencerow.all_jobs AS job
    WHERE {{filters}}
      AND {{carries all}}
      AND job.id < (SELECT looked.id FROM looked ORDER BY looked.id LIMIT 1)
      AND (SELECT count(*) FROM near) < CAST(:limit AS integer)
      AND (SELECT count(*) FROM looked) = 5000
)
SELECT CAST(json_build_object(
           {{all but payloads}}
       ) AS text), CAST(NULL AS text)
{{jobs with progress}}
WHERE job.id = ANY(ARRAY(SELECT page.id
                         FROM (SELECT near.id FROM near UNION ALL SELECT far.id FROM far) AS page
                         ORDER BY page.id DESC
                         LIMIT CAST(:limit AS integer)))
  AND job.id >= COALESCE(CAST(:from_id AS uuid), CAST('00000000-0000-0000-0000-000000000000' AS uuid));

-- name: events
-- What happened to a job beyond its columns, in order.
SELECT note.attempt, fencerow.us(note.at), note.kind, note.actor, CAST(note.detail AS text)
FROM fencerow.job_events AS note
WHERE note.job_id = CAST(:id AS uuid)
ORDER BY note.id
LIMIT CAST(:limit AS integer);

-- name: logs
-- The lines kept with a job, in order.
SELECT note.attempt, fencerow.us(note.at), note.level, note.message
FROM fencerow.job_logs AS note
WHERE note.job_id = CAST(:id AS uuid)
ORDER BY note.id
LIMIT CAST(:limit AS integer);

-- name: counts
-- Live jobs by queue, name and state, with the oldest due instant of the queued.
SELECT job.queue, job.name, job.state, count(*), fencerow.us(min(job.run_at)), fencerow.us(fencerow.now())
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
      WHERE mine.id = CAST(:id AS uuid)
        AND job.queue = mine.queue AND job.state = 'queued' AND NOT job.suspect
        AND (job.affinity IS NULL OR job.fell_back_for > job.attempt OR fencerow.lane(job) = fencerow.lane(mine))
        AND job.run_at <= (SELECT fencerow.now())
        AND (job.priority > mine.priority
             OR job.priority = mine.priority AND (job.run_at, job.id) < (mine.run_at, mine.id))
      LIMIT 1000) AS before;
