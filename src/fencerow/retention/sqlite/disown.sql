-- Jobs that no code knows: a name that was removed or misspelled would otherwise wait for ever.

-- name: lanes_since
-- All lanes of a queue, by priority and name, whose first job has been due for :age_s: a skip scan.
WITH RECURSIVE seen (id) AS (
    SELECT (SELECT job.id
            FROM fencerow.jobs AS job
            WHERE job.queue = :queue AND job.state = 'queued'
            ORDER BY job.priority DESC, job.lane, job.run_at
            LIMIT 1)
    UNION ALL
    SELECT COALESCE(
        (SELECT job.id
         FROM fencerow.jobs AS job
         WHERE job.queue = :queue AND job.state = 'queued' AND job.priority = here.priority AND job.lane > here.lane
         ORDER BY job.lane, job.run_at
         LIMIT 1),
        (SELECT job.id
         FROM fencerow.jobs AS job
         WHERE job.queue = :queue AND job.state = 'queued' AND job.priority < here.priority
         ORDER BY job.priority DESC, job.lane, job.run_at
         LIMIT 1))
    FROM seen JOIN fencerow.jobs AS here ON here.id = seen.id
)
SELECT here.priority, here.lane
FROM seen JOIN fencerow.jobs AS here ON here.id = seen.id
WHERE here.run_at <= fencerow.now() - CAST(:age_s * 1000000 AS INTEGER);

-- name: disown
-- End the queued jobs of one lane that have been due for :age_s although no worker that
-- was alive since then knows their name. Only the first :look jobs of the lane are looked at: the order is that of age.
-- Guard: still queued, due for that long, and the name unknown to every registration renewed since; a worker that does
-- not say what it knows is taken to know all.
-- Finals are moved by archive in the same transaction.
UPDATE fencerow.jobs
SET state = 'failed',
    error = json_object('type', 'UnknownJob', 'code', 'unknown_name', 'message',
                        'no worker knows a job of this name, and none did since it was due'),
    ended_at = fencerow.now()
WHERE state = 'queued'
  AND id IN (SELECT queued.id
             FROM fencerow.jobs AS queued
             WHERE queued.queue = :queue
               AND queued.priority = :priority
               AND queued.lane = :lane
               AND queued.state = 'queued'
               AND queued.run_at <= fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
             ORDER BY queued.run_at, queued.id
             LIMIT :look)
  AND name NOT IN (SELECT known.value
                   FROM fencerow.workers AS worker,
                        json_each(CASE WHEN json_valid(worker.info) THEN worker.info END, '$.names') AS known
                   WHERE worker.renewed_at >= fencerow.now() - CAST(:age_s * 1000000 AS INTEGER))
  AND NOT EXISTS (SELECT 1
                  FROM fencerow.workers AS worker
                  WHERE worker.renewed_at >= fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
                    AND json_type(CASE WHEN json_valid(worker.info) THEN worker.info END, '$.names') IS NULL)
RETURNING id;

-- name: note_disowned
-- Tell the timeline of jobs that this transaction has ended.
-- Guard: failed, and still among the live jobs, which only this transaction can see.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
SELECT job.id, job.attempt, job.ended_at, 'disowned', :actor
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state = 'failed';
