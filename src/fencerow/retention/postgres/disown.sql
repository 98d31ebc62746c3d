-- Jobs that no code knows: a name that was removed or misspelled would otherwise wait for ever.

-- name: lanes_since
-- All lanes of a queue, by priority and name, whose first job has been due for :age_s: a skip scan.
WITH RECURSIVE seen AS (
    (SELECT job.priority, fencerow.lane(job), job.run_at
     FROM fencerow.jobs AS job
     WHERE job.queue = :queue AND job.state = 'queued'
     ORDER BY job.priority DESC, fencerow.lane(job), job.run_at
     LIMIT 1)
    UNION ALL
    SELECT following.priority, following.lane, following.run_at
    FROM seen
    CROSS JOIN LATERAL (
        (SELECT job.priority, fencerow.lane(job), job.run_at
         FROM fencerow.jobs AS job
         WHERE job.queue = :queue AND job.state = 'queued' AND job.priority = seen.priority AND fencerow.lane(job) > seen.lane
         ORDER BY fencerow.lane(job), job.run_at
         LIMIT 1)
        UNION ALL
        (SELECT job.priority, fencerow.lane(job), job.run_at
         FROM fencerow.jobs AS job
         WHERE job.queue = :queue AND job.state = 'queued' AND job.priority < seen.priority
         ORDER BY job.priority DESC, fencerow.lane(job), job.run_at
         LIMIT 1)
        LIMIT 1
    ) AS following
)
SELECT seen.priority, seen.lane
FROM seen
WHERE seen.run_at <= fencerow.now() - fencerow.seconds(CAST(:age_s AS double precision));

-- name: disown
-- End the queued jobs of one lane that have been due for :age_s although no worker that
-- was alive since then knows their name. Only the first :look jobs of the lane are looked at: the order is that of age.
-- Guard: still queued, due for that long, and the name unknown to every registration renewed since; a worker that does
-- not say what it knows is taken to know all. Locked rows are left for the next time.
-- Finals are moved by archive in the same transaction.
WITH clock AS MATERIALIZED (
    SELECT fencerow.now() AS now, fencerow.now() - fencerow.seconds(CAST(:age_s AS double precision)) AS since
),
recent AS MATERIALIZED (
    SELECT CASE WHEN json_typeof(worker.info -> 'names') = 'array' THEN worker.info -> 'names' END AS names
    FROM fencerow.workers AS worker, clock
    WHERE worker.renewed_at >= clock.since
)
UPDATE fencerow.jobs AS job
SET state = 'failed',
    error = json_build_object('type', 'UnknownJob', 'code', 'unknown_name', 'message',
                              'no worker knows a job of this name, and none did since it was due'),
    ended_at = clock.now
FROM clock
WHERE job.id = ANY(ARRAY(
        SELECT late.id
        FROM fencerow.jobs AS late
        WHERE late.id IN (
                SELECT queued.id
                FROM fencerow.jobs AS queued
                WHERE queued.queue = :queue
                  AND queued.priority = CAST(:priority AS smallint)
                  AND fencerow.lane(queued) = :lane
                  AND queued.state = 'queued'
                  AND queued.run_at <= (SELECT clock.since FROM clock)
                ORDER BY queued.run_at, queued.id
                LIMIT CAST(:look AS integer)
            )
          AND late.state IS NOT DISTINCT FROM 'queued'
          AND late.name <> ALL(ARRAY(SELECT known.name
                                     FROM recent CROSS JOIN LATERAL json_array_elements_text(recent.names) AS known (name)))
        FOR UPDATE SKIP LOCKED
    ))
  AND job.state IS NOT DISTINCT FROM 'queued'
  AND job.run_at <= clock.since
  AND NOT EXISTS (SELECT 1 FROM recent WHERE recent.names IS NULL)
RETURNING job.id;

-- name: note_disowned
-- Tell the timeline of jobs that this transaction has ended.
-- Guard: failed, and still among the live jobs, which only this transaction can see.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
SELECT job.id, job.attempt, job.ended_at, 'disowned', CAST(:actor AS text)
FROM fencerow.jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state = 'failed';
