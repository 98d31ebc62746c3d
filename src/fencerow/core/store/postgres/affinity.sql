-- Affinity: a job that names a label waits for a worker that carries it. It is `waiting`, at no gate and in no lane, so a
-- claim of others never meets it. A worker with the label claims it from there. Once `affinity_wait_s` have passed since it
-- was due it is queued, for anybody. So whoever asks first has it: both change the one row under the guard of its state.

-- fragment: of these labels
-- It waits for one of the labels that the worker carries.
job.state = 'waiting' AND job.affinity = ANY(CAST(:labels AS text[]))

-- fragment: claimed beside the others
-- The end of a claim by label, whose UPDATE is `claimed`: as in `claimed jobs`, and of each the label for which it waited.
RETURNING job.*
)
SELECT CAST(json_agg(json_build_array(
           id, name, queue, attempt, priority, fencerow.us(run_at), suspect, failures, crashes, snoozes,
           attempts_max, snoozes_max, timeout_s, fencerow.us(submitted_at),
           CASE WHEN args_bytes <= 65536 AND bytes_so_far <= 8388608 THEN args END,
           options, tags, metadata, headers, share, affinity
       ) ORDER BY priority DESC, run_at, id) AS text)
FROM (SELECT claimed.*, sum(args_bytes) OVER (ORDER BY priority DESC, run_at, id) AS bytes_so_far FROM claimed) AS sized

-- name: claim_labelled
-- What claim does, for a worker with labels: in each lane first the due jobs that wait for one of :labels, in their
-- order, then, where the
-- lane says so, those that wait for nobody.
-- Guard: as in claim; of a job with affinity that it waits still, and for a label that this worker carries.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
claimed AS (
    UPDATE fencerow.jobs AS job
    SET {{started}}
    FROM clock
    WHERE job.id = ANY(ARRAY(
            SELECT candidate.id
            FROM json_array_elements(CAST(:lanes AS json)) WITH ORDINALITY AS lane (mark, position)
            CROSS JOIN LATERAL (
                SELECT own.id
                FROM unnest(CAST(:labels AS text[])) AS carried (label)
                CROSS JOIN LATERAL (
                    SELECT queued.id
                    FROM fencerow.jobs AS queued
                    WHERE queued.queue = :queue
                      AND queued.affinity = carried.label
                      AND queued.priority = CAST(lane.mark ->> 0 AS smallint)
                      AND queued.state = 'waiting'
                      AND NOT queued.suspect
                      AND {{claimable}}
                    ORDER BY queued.run_at, queued.id
                    LIMIT CAST(:limit AS integer)
                    FOR UPDATE SKIP LOCKED
                ) AS own
                UNION ALL
                SELECT anybodys.id
                FROM (
                    SELECT queued.id
                    FROM fencerow.jobs AS queued
                    WHERE queued.queue = :queue
                      AND queued.priority = CAST(lane.mark ->> 0 AS smallint)
                      AND queued.state = 'queued'
                      AND NOT queued.suspect
                      AND CAST(lane.mark ->> 3 AS boolean)
                      AND (queued.run_at, queued.id)
                          > (fencerow.at(CAST(lane.mark ->> 1 AS bigint)), CAST(lane.mark ->> 2 AS uuid))
                      AND {{claimable}}
                    ORDER BY queued.run_at, queued.id
                    LIMIT CAST(:limit AS integer)
                    FOR UPDATE SKIP LOCKED
                ) AS anybodys
            ) AS candidate
            LIMIT CAST(:limit AS integer)
        ))
      AND (job.state = 'queued' OR {{of these labels}})
      AND {{may claim}}
    {{claimed beside the others}};

-- name: claim_labelled_suspect
-- What claim_suspect does, for a worker with labels: first the suspects that wait for one of them, then all others.
-- Guards as in claim_labelled.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
claimed AS (
    UPDATE fencerow.jobs AS job
    SET {{started}}
    FROM clock
    WHERE job.id = ANY(ARRAY(
            SELECT candidate.id
            FROM (SELECT own.id
                  FROM unnest(CAST(:labels AS text[])) AS carried (label)
                  CROSS JOIN LATERAL (
                      SELECT queued.id
                      FROM fencerow.jobs AS queued
                      WHERE queued.queue = :queue
                        AND queued.affinity = carried.label
                        AND queued.state = 'waiting'
                        AND queued.suspect
                        AND {{claimable}}
                      ORDER BY queued.run_at, queued.id
                      LIMIT CAST(:at_most AS integer)
                      FOR UPDATE SKIP LOCKED
                  ) AS own
                  UNION ALL
                  SELECT anybodys.id
                  FROM (
                      SELECT queued.id
                      FROM fencerow.jobs AS queued
                      WHERE queued.queue = :queue
                        AND queued.state = 'queued'
                        AND queued.suspect
                        AND {{claimable}}
                      ORDER BY queued.run_at, queued.id
                      LIMIT CAST(:at_most AS integer)
                      FOR UPDATE SKIP LOCKED
                  ) AS anybodys) AS candidate
            LIMIT {{suspects left}}
        ))
      AND (job.state = 'queued' OR {{of these labels}})
      AND {{may claim}}
    {{claimed beside the others}};

-- name: labelled_lanes
-- The lanes of one queue that hold jobs which wait for one of these labels, each with the instant its first job is due, and
-- with no priority those whose first is a suspect: a skip scan for each label. Each says whether a limit bounds the claims of
-- this queue.
WITH RECURSIVE lane AS (
    SELECT carried.label, first.priority, first.run_at
    FROM unnest(CAST(:labels AS text[])) AS carried (label)
    CROSS JOIN LATERAL (
        SELECT job.priority, job.run_at
        FROM fencerow.jobs AS job
        WHERE job.queue = :queue AND job.affinity = carried.label AND job.state = 'waiting' AND NOT job.suspect
        ORDER BY job.priority DESC, job.run_at
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT lane.label, below.priority, below.run_at
    FROM lane
    CROSS JOIN LATERAL (
        SELECT job.priority, job.run_at
        FROM fencerow.jobs AS job
        WHERE job.queue = :queue AND job.affinity = lane.label AND job.state = 'waiting' AND NOT job.suspect
          AND job.priority < lane.priority
        ORDER BY job.priority DESC, job.run_at
        LIMIT 1
    ) AS below
)
SELECT lane.priority, fencerow.us(lane.run_at), fencerow.us(fencerow.now()), {{limited}}
FROM lane
UNION ALL
SELECT NULL, fencerow.us(first.run_at), fencerow.us(fencerow.now()), {{limited}}
FROM unnest(CAST(:labels AS text[])) AS carried (label)
CROSS JOIN LATERAL (
    SELECT job.run_at
    FROM fencerow.jobs AS job
    WHERE job.queue = :queue AND job.affinity = carried.label AND job.state = 'waiting' AND job.suspect
    ORDER BY job.run_at
    LIMIT 1
) AS first;

-- name: any_due_labelled
-- The same look as any_due, at the jobs that wait for one of these labels.
SELECT EXISTS (
    SELECT 1
    FROM fencerow.jobs AS job
    WHERE job.queue = ANY(CAST(:queues AS text[]))
      AND job.name = ANY(CAST(:names AS text[]))
      AND {{of these labels}}
      AND job.run_at <= (SELECT fencerow.now())
      AND (job.expires_at IS NULL OR job.expires_at > (SELECT fencerow.now()))
      AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue
                      WHERE queue.name = job.queue AND queue.paused_at IS NOT NULL)
);

-- fragment: falls back
-- It waits for a label, and anybody may take it now: the wait is over, by the clock of the database and no other.
job.state = 'waiting'
AND job.affinity IS NOT NULL
AND job.affinity_wait_s IS NOT NULL
AND fencerow.later(job.run_at, job.affinity_wait_s) <= (SELECT fencerow.now())

-- name: fall_back
-- Queue jobs that have waited long enough for their label, those whose wait was over first. They keep their place in their
-- lane and their affinity: after this attempt they wait for it again.
-- Guard: still waiting for a label, and the wait over; a claim, a cancel or a change that came first makes this change nothing.
WITH moved AS (
    UPDATE fencerow.jobs AS job
    SET state = 'queued'
    WHERE job.id = ANY(ARRAY(
            SELECT job.id
            FROM fencerow.jobs AS job
            WHERE {{falls back}}
            ORDER BY fencerow.later(job.run_at, job.affinity_wait_s)
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
      AND {{falls back}}
    RETURNING job.id, job.attempt, job.queue, job.priority, job.run_at, job.affinity
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, (SELECT fencerow.now()), 'fell_back', CAST(:actor AS text),
           json_build_object('affinity', moved.affinity)
    FROM moved
)
SELECT CAST(id AS text), queue, priority, fencerow.us(run_at), false FROM moved;
