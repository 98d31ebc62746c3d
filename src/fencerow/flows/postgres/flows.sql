-- Flows: what a submit writes beside its jobs; and who is woken when jobs of a flow have ended.
-- Whoever wakes locks the flow first, and looks in later statements. So of two ends of one flow that are told at the same time
-- the second sees the first. An end that is not told yet stays so until it is: nobody must hear of it in time.
-- Rows that are named are found by their ids: num_nulls() is no condition of an index, so that the planner does not walk all that
-- have not ended, or are to be told, as it would when it believes that few are.

-- name: put_flow
-- Note a flow that is submitted now. Guard: its id. No row: it was submitted before.
INSERT INTO fencerow.flows (id, name, digest, submit_id, jobs, queues, submitted_at, submitted_by)
VALUES (CAST(:id AS uuid), CAST(:flow AS text), CAST(:digest AS text), CAST(:submit_id AS uuid), CAST(:jobs AS integer),
        CAST(:queues AS text[]), (SELECT fencerow.now()), CAST(:actor AS text))
ON CONFLICT (id) DO NOTHING
RETURNING CAST(id AS text);

-- name: read_digest
-- What was submitted under this id, and by which submit. A statement of its own: the insert that found it has an older snapshot.
SELECT flow.digest, CAST(flow.submit_id AS text) FROM fencerow.flows AS flow WHERE flow.id = CAST(:id AS uuid);

-- name: put_flow_jobs
-- Note the jobs of a new flow, in the transaction of their insert. One that waits for nobody may start at once.
INSERT INTO fencerow.flow_jobs (job_id, flow_id, name, job_name, place, level, stage, is_read, woken_at)
SELECT given.job_id, CAST(:id AS uuid), given.name, given.job_name, given.place, given.level, given.stage, given.is_read,
       CASE WHEN given.level = 0 THEN clock.now END
FROM json_to_recordset(CAST(:given AS json)) AS given (
    job_id uuid, name text, job_name text, place integer, level integer, stage boolean, is_read boolean
)
CROSS JOIN (SELECT fencerow.now() AS now) AS clock;

-- name: put_flow_edges
-- Note who waits for whom.
INSERT INTO fencerow.flow_edges (job_id, before_id, flow_id, policy)
SELECT CAST(edge.value ->> 0 AS uuid), CAST(edge.value ->> 1 AS uuid), CAST(:id AS uuid), edge.value ->> 2
FROM json_array_elements(CAST(:edges AS json)) AS edge (value);

-- name: put_flow_callbacks
-- Note the jobs that are made once it is known how the flow ends.
INSERT INTO fencerow.flow_callbacks (job_id, flow_id, outcome, job)
SELECT CAST(callback.value ->> 0 AS uuid), CAST(:id AS uuid), callback.value ->> 1, callback.value -> 2
FROM json_array_elements(CAST(:callbacks AS json)) AS callback (value);

-- name: flows_wanted
-- Whether an end is to be told; whether any flow has not ended; and whether any job may wait for one inside of its handler.
SELECT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.state IS NOT NULL AND NOT member.told),
       EXISTS (SELECT 1 FROM fencerow.flows AS flow WHERE flow.ended_at IS NULL),
       EXISTS (SELECT 1 FROM fencerow.flow_waits);

-- name: lock_flows
-- Lock flows with ends to be told, in sorted order. One that somebody else works on is left: its ends stay. It goes from flow
-- to flow, so that many ends of one that is locked hide no other.
WITH RECURSIVE untold (flow_id, number) AS (
    (SELECT member.flow_id, 1
     FROM fencerow.flow_jobs AS member
     WHERE member.state IS NOT NULL AND NOT member.told
     ORDER BY member.flow_id
     LIMIT 1)
    UNION ALL
    SELECT (SELECT member.flow_id
            FROM fencerow.flow_jobs AS member
            WHERE member.state IS NOT NULL AND NOT member.told AND member.flow_id > untold.flow_id
            ORDER BY member.flow_id
            LIMIT 1), untold.number + 1
    FROM untold
    WHERE untold.flow_id IS NOT NULL AND untold.number < CAST(:flows AS integer)
)
SELECT CAST(flow.id AS text)
FROM fencerow.flows AS flow
WHERE flow.id = ANY(ARRAY(SELECT untold.flow_id FROM untold WHERE untold.flow_id IS NOT NULL))
ORDER BY flow.id
LIMIT CAST(:limit AS integer)
FOR UPDATE SKIP LOCKED;

-- name: take_flow_ends
-- Ends of these flows that are to be told, told from now on. Guard: the flows are locked, so nobody else tells them; a
-- revive of one of the jobs that is under way keeps its row, and leaves nothing to tell.
UPDATE fencerow.flow_jobs AS member
SET told = true
WHERE member.job_id = ANY(ARRAY(
        SELECT untold.job_id
        FROM fencerow.flow_jobs AS untold
        WHERE untold.flow_id = ANY(CAST(:flows AS uuid[]))
          AND untold.state IS NOT NULL
          AND NOT untold.told
        ORDER BY untold.flow_id, untold.place
        LIMIT CAST(:limit AS integer)
        FOR UPDATE SKIP LOCKED
    ))
  AND num_nonnulls(member.state) = 1
  AND NOT member.told
RETURNING CAST(member.job_id AS text);

-- name: close_flow_edges
-- Tell the ends to those that wait for them.
UPDATE fencerow.flow_edges AS edge
SET state = before.state
FROM fencerow.flow_jobs AS before
WHERE before.job_id = ANY(CAST(:ids AS uuid[]))
  AND before.state IS NOT NULL
  AND edge.before_id = before.job_id
  AND edge.before_id = ANY(CAST(:ids AS uuid[]))
RETURNING CAST(edge.job_id AS text), CAST(edge.before_id AS text);

-- name: look_at_flow_jobs
-- Of those of these jobs that have neither ended nor been woken: whether one that they wait for has not ended; one that they
-- need and that did not succeed; and whether the cancel of their flow was asked. A later statement than the locks.
SELECT CAST(member.job_id AS text),
       EXISTS (SELECT 1 FROM fencerow.flow_edges AS edge WHERE edge.job_id = member.job_id AND edge.state IS NULL OFFSET 0),
       broken.name, broken.state, CAST(broken.job_id AS text), flow.cancel_requested_at IS NOT NULL
FROM fencerow.flow_jobs AS member
CROSS JOIN LATERAL (SELECT known.cancel_requested_at FROM fencerow.flows AS known WHERE known.id = member.flow_id OFFSET 0) AS flow
LEFT JOIN LATERAL (
    SELECT known.job_id, known.name, known.state
    FROM fencerow.flow_jobs AS known
    WHERE known.job_id = (SELECT edge.before_id
                          FROM fencerow.flow_edges AS edge
                          WHERE edge.job_id = member.job_id
                            AND edge.policy = 'needs'
                            AND edge.state IN ('failed', 'cancelled')
                          LIMIT 1)
    OFFSET 0
) AS broken ON true
WHERE member.job_id = ANY(CAST(:ids AS uuid[]))
  AND num_nulls(member.state) = 1
  AND member.woken_at IS NULL;

-- name: note_flow_jobs_woken
-- What they wait for has ended, and they go. Guard: they were not woken before.
UPDATE fencerow.flow_jobs AS member
SET woken_at = (SELECT fencerow.now())
WHERE member.job_id = ANY(CAST(:ids AS uuid[]))
  AND member.woken_at IS NULL
RETURNING CAST(member.job_id AS text);

-- name: tell_again
-- Those that wait for these ends could not be looked at: they are to be told again. Guard: ended still.
UPDATE fencerow.flow_jobs AS member
SET told = false
WHERE member.job_id = ANY(CAST(:ids AS uuid[]))
  AND member.state IS NOT NULL
RETURNING CAST(member.job_id AS text);

-- name: end_flows
-- End those of these flows whose jobs have all ended and were told. Guard: the flows are locked.
UPDATE fencerow.flows AS flow
SET ended_at = (SELECT fencerow.now())
WHERE flow.id = ANY(CAST(:flows AS uuid[]))
  AND num_nulls(flow.ended_at) = 1
  AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL OFFSET 0)
  AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                  WHERE member.flow_id = flow.id AND member.state IS NOT NULL AND NOT member.told OFFSET 0)
RETURNING CAST(flow.id AS text);

-- name: take_callbacks
-- The callbacks of these flows whose time has come: a job has failed; or all have ended, and all have succeeded. A flow that has
-- ended has jobs that live where somebody has revived these alone.
-- Guard: not made before. The flows are locked, and the mark and the job are one transaction: each is made once.
UPDATE fencerow.flow_callbacks AS callback
SET made_at = (SELECT fencerow.now())
FROM fencerow.flows AS flow
WHERE flow.id = ANY(CAST(:flows AS uuid[]))
  AND callback.flow_id = flow.id
  AND callback.made_at IS NULL
  AND CASE callback.outcome
          WHEN 'failed' THEN EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                                     WHERE member.flow_id = flow.id AND member.state = 'failed')
          WHEN 'done' THEN flow.ended_at IS NOT NULL
          ELSE flow.ended_at IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL)
               AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                               WHERE member.flow_id = flow.id AND member.state IN ('failed', 'cancelled'))
      END
RETURNING CAST(callback.job_id AS text), CAST(callback.job AS text);

-- name: note_callback_trouble
-- Why a callback could not be submitted: the doctor tells of it.
UPDATE fencerow.flow_callbacks AS callback
SET trouble = CAST(:trouble AS text)
WHERE callback.job_id = CAST(:id AS uuid)
RETURNING CAST(callback.job_id AS text);

-- name: flow_jobs_after
-- How far some jobs of flows reach that have not ended, in the order of their ids: what is looked at in one go.
SELECT count(*), CAST(max(few.id) AS text)
FROM (SELECT CAST(member.job_id AS text) AS id
      FROM fencerow.flow_jobs AS member
      WHERE member.state IS NULL AND member.job_id > CAST(:after AS uuid)
      ORDER BY member.job_id
      LIMIT CAST(:limit AS integer)) AS few;

-- name: lock_missed_flow_jobs
-- Lock those whose job is not live, though its end was never written: somebody moved or removed it by hand.
SELECT CAST(member.job_id AS text)
FROM fencerow.flow_jobs AS member
WHERE member.state IS NULL
  AND member.job_id > CAST(:after AS uuid)
  AND member.job_id <= CAST(:last AS uuid)
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = member.job_id OFFSET 0)
FOR UPDATE SKIP LOCKED;

-- name: write_missed_flow_ends
-- Write the ends that were missed; of a job that is nowhere nobody knows how it ended. A statement of its own, after the
-- locks: a revive that was committed before them is seen here, and one that comes later waits. Guard: not ended, not live.
UPDATE fencerow.flow_jobs AS member
SET state = COALESCE(known.state, 'failed'),
    attempt = known.attempt,
    result = CASE WHEN member.is_read THEN known.result END,
    error = CASE WHEN known.state IS NULL
                 THEN json_build_object('type', 'JobGone', 'code', 'job_gone', 'message', 'the job was removed before its flow knew its end')
                 ELSE known.error END,
    ended_at = COALESCE(known.ended_at, (SELECT fencerow.now()))
FROM unnest(CAST(:ids AS uuid[])) AS missed (id)
LEFT JOIN fencerow.finished_jobs AS known ON known.id = missed.id
WHERE member.job_id = ANY(CAST(:ids AS uuid[]))
  AND member.job_id = missed.id
  AND num_nulls(member.state) = 1
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = member.job_id OFFSET 0)
RETURNING CAST(member.job_id AS text);
