-- Affinity: a job that names a label waits for a worker that carries it. It is `waiting`, at no gate and in no lane, so a
-- claim of others never meets it. A worker with the label claims it from there. Once `affinity_wait_s` have passed since it
-- was due it is queued, for anybody. So whoever asks first has it: both change the one row under the guard of its state.

-- fragment: of these labels
-- It waits for one of the labels that the worker carries.
state = 'waiting' AND affinity IN (SELECT value FROM json_each(:labels))

-- name: claim_labelled
-- What claim does, for a worker with labels: in each lane first the due jobs that wait for one of :labels, in their
-- order, then, where the
-- lane says so, those that wait for nobody.
-- Guard: as in claim; of a job with affinity that it waits still, and for a label that this worker carries.
UPDATE fencerow.jobs
SET {{started}}
WHERE id IN (
        SELECT candidate.value
        FROM json_each(:lanes) AS lane,
             json_each((
                 SELECT json_group_array(id)
                 FROM (SELECT own.value AS id, carried.key AS place, own.key AS number
                       FROM json_each(:labels) AS carried,
                            json_each((
                                SELECT json_group_array(id)
                                FROM (SELECT queued.id
                                      FROM fencerow.jobs AS queued
                                      WHERE queued.queue = :queue
                                        AND queued.affinity = carried.value
                                        AND queued.priority = json_extract(lane.value, '$[0]')
                                        AND queued.state = 'waiting'
                                        AND queued.suspect = 0
                                        AND {{claimable}}
                                      ORDER BY queued.run_at, queued.id
                                      LIMIT :limit)
                            )) AS own
                       UNION ALL
                       SELECT anybodys.value, 1000000, anybodys.key
                       FROM json_each((
                                SELECT json_group_array(id)
                                FROM (SELECT queued.id
                                      FROM fencerow.jobs AS queued
                                      WHERE queued.queue = :queue
                                        AND queued.priority = json_extract(lane.value, '$[0]')
                                        AND queued.state = 'queued'
                                        AND queued.suspect = 0
                                        AND json_extract(lane.value, '$[3]')
                                        AND (queued.run_at, queued.id)
                                            > (json_extract(lane.value, '$[1]'), json_extract(lane.value, '$[2]'))
                                        AND {{claimable}}
                                      ORDER BY queued.run_at, queued.id
                                      LIMIT :limit)
                            )) AS anybodys
                       ORDER BY place, number
                       LIMIT :limit)
             )) AS candidate
        ORDER BY lane.key, candidate.key
        LIMIT :limit
    )
  AND (state = 'queued' OR {{of these labels}})
  AND {{may claim}}
RETURNING {{claimed beside the others}};

-- name: claim_labelled_suspect
-- What claim_suspect does, for a worker with labels: first the suspects that wait for one of them, then all others.
-- Guards as in claim_labelled.
UPDATE fencerow.jobs
SET {{started}}
WHERE id IN (
        SELECT candidate.id
        FROM (SELECT carried.key AS place, queued.run_at, queued.id
              FROM json_each(:labels) AS carried
              CROSS JOIN fencerow.jobs AS queued
              WHERE queued.queue = :queue
                AND queued.affinity = carried.value
                AND queued.state = 'waiting'
                AND queued.suspect = 1
                AND {{claimable}}
              UNION ALL
              SELECT 1000000 AS place, queued.run_at, queued.id
              FROM fencerow.jobs AS queued
              WHERE queued.queue = :queue
                AND queued.state = 'queued'
                AND queued.suspect = 1
                AND {{claimable}}) AS candidate
        ORDER BY candidate.place, candidate.run_at, candidate.id
        LIMIT {{suspects left}}
    )
  AND (state = 'queued' OR {{of these labels}})
  AND {{may claim}}
RETURNING {{claimed beside the others}};

-- name: labelled_lanes
-- The lanes of one queue that hold jobs which wait for one of these labels, each with the instant its first job is due, and
-- with no priority those whose first is a suspect: a skip scan for each label. Each says whether a limit bounds the claims of
-- this queue.
WITH RECURSIVE lane (label, priority) AS (
    SELECT carried.value, (SELECT max(job.priority)
                           FROM fencerow.jobs AS job
                           WHERE job.queue = :queue AND job.affinity = carried.value AND job.state = 'waiting'
                             AND job.suspect = 0)
    FROM json_each(:labels) AS carried
    UNION ALL
    SELECT lane.label, (SELECT max(job.priority)
                        FROM fencerow.jobs AS job
                        WHERE job.queue = :queue AND job.affinity = lane.label AND job.state = 'waiting'
                          AND job.suspect = 0 AND job.priority < lane.priority)
    FROM lane
    WHERE lane.priority IS NOT NULL
)
SELECT lane.priority,
       (SELECT job.run_at
        FROM fencerow.jobs AS job
        WHERE job.queue = :queue AND job.affinity = lane.label AND job.state = 'waiting' AND job.suspect = 0
          AND job.priority = lane.priority
        ORDER BY job.run_at
        LIMIT 1),
       fencerow.now(), {{limited}}
FROM lane
WHERE lane.priority IS NOT NULL
UNION ALL
SELECT NULL, first.run_at, fencerow.now(), {{limited}}
FROM (SELECT (SELECT job.run_at
              FROM fencerow.jobs AS job
              WHERE job.queue = :queue AND job.affinity = carried.value AND job.state = 'waiting' AND job.suspect = 1
              ORDER BY job.run_at
              LIMIT 1) AS run_at
      FROM json_each(:labels) AS carried) AS first
WHERE first.run_at IS NOT NULL;

-- name: any_due_labelled
-- The same look as any_due, at the jobs that wait for one of these labels.
SELECT EXISTS (
    SELECT 1
    FROM fencerow.jobs AS job
    WHERE job.queue IN (SELECT value FROM json_each(:queues))
      AND job.name IN (SELECT value FROM json_each(:names))
      AND {{of these labels}}
      AND job.run_at <= (SELECT fencerow.now())
      AND (job.expires_at IS NULL OR job.expires_at > (SELECT fencerow.now()))
      AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                      WHERE queue.name = job.queue AND queue.paused_at IS NOT NULL)
);

-- fragment: falls back
-- It waits for a label, and anybody may take it now: the wait is over.
state = 'waiting'
AND affinity IS NOT NULL
AND affinity_wait_s IS NOT NULL
AND run_at + CAST(affinity_wait_s * 1000000 AS INTEGER) <= (SELECT fencerow.now())

-- name: fall_back
-- Queue jobs that have waited long enough for their label, those whose wait was over first. They keep their place in their
-- lane and their affinity: after this attempt they wait for it again.
-- Guard: still waiting for a label, and the wait over.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT id, attempt, fencerow.now(), 'fell_back', :actor, json_object('affinity', affinity)
FROM fencerow.jobs
WHERE {{falls back}}
ORDER BY run_at + CAST(affinity_wait_s * 1000000 AS INTEGER), id
LIMIT :limit;
UPDATE fencerow.jobs
SET state = 'queued'
WHERE id IN (
        SELECT id
        FROM fencerow.jobs
        WHERE {{falls back}}
        ORDER BY run_at + CAST(affinity_wait_s * 1000000 AS INTEGER), id
        LIMIT :limit
    )
  AND {{falls back}}
RETURNING id, queue, priority, run_at, false;
