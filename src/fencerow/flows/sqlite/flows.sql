-- Flows: what a submit writes beside its jobs; and who is woken when jobs of a flow have ended.
-- The file has one writer: of two ends of one flow that are told at the same time the second sees the first. An end that is
-- not told yet stays so until it is: nobody must hear of it in time.

-- name: put_flow
-- Note a flow that is submitted now. Guard: its id. No row: it was submitted before.
INSERT INTO fencerow.flows (id, name, digest, submit_id, jobs, queues, submitted_at, submitted_by)
VALUES (:id, :flow, :digest, :submit_id, :jobs, json(:queues), fencerow.now(), :actor)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: read_digest
-- What was submitted under this id, and by which submit.
SELECT flow.digest, flow.submit_id FROM fencerow.flows AS flow WHERE flow.id = :id;

-- name: put_flow_jobs
-- Note the jobs of a new flow, in the transaction of their insert. One that waits for nobody may start at once.
INSERT INTO fencerow.flow_jobs (job_id, flow_id, name, job_name, place, level, stage, is_read, woken_at)
SELECT given.value ->> 'job_id', :id, given.value ->> 'name', given.value ->> 'job_name', given.value ->> 'place',
       given.value ->> 'level', given.value ->> 'stage', given.value ->> 'is_read',
       CASE WHEN given.value ->> 'level' = 0 THEN fencerow.now() END
FROM json_each(:given) AS given;

-- name: put_flow_edges
-- Note who waits for whom.
INSERT INTO fencerow.flow_edges (job_id, before_id, flow_id, policy)
SELECT edge.value ->> 0, edge.value ->> 1, :id, edge.value ->> 2
FROM json_each(:edges) AS edge;

-- name: put_flow_callbacks
-- Note the jobs that are made once it is known how the flow ends.
INSERT INTO fencerow.flow_callbacks (job_id, flow_id, outcome, job)
SELECT callback.value ->> 0, :id, callback.value ->> 1, callback.value -> 2
FROM json_each(:callbacks) AS callback;

-- name: flows_wanted
-- Whether an end is to be told; whether any flow has not ended; and whether any job may wait for one inside of its handler.
SELECT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.state IS NOT NULL AND member.told = 0),
       EXISTS (SELECT 1 FROM fencerow.flows AS flow WHERE flow.ended_at IS NULL),
       EXISTS (SELECT 1 FROM fencerow.flow_waits);

-- name: lock_flows
-- Flows with ends to be told, in sorted order; the write lock is held already, so none of them is another's.
SELECT DISTINCT member.flow_id
FROM fencerow.flow_jobs AS member
WHERE member.state IS NOT NULL AND member.told = 0
ORDER BY member.flow_id
LIMIT min(:limit, :flows);

-- name: take_flow_ends
-- Ends of these flows that are to be told, told from now on. Guard: not told before.
UPDATE fencerow.flow_jobs
SET told = 1
WHERE job_id IN (
        SELECT untold.job_id
        FROM fencerow.flow_jobs AS untold
        WHERE untold.flow_id IN (SELECT value FROM json_each(:flows))
          AND untold.state IS NOT NULL
          AND untold.told = 0
        ORDER BY untold.flow_id, untold.place
        LIMIT :limit
    )
RETURNING job_id;

-- name: close_flow_edges
-- Tell the ends to those that wait for them.
UPDATE fencerow.flow_edges
SET state = (SELECT before.state FROM fencerow.flow_jobs AS before WHERE before.job_id = before_id)
WHERE before_id IN (SELECT value FROM json_each(:ids))
  AND EXISTS (SELECT 1 FROM fencerow.flow_jobs AS before WHERE before.job_id = before_id AND before.state IS NOT NULL)
RETURNING job_id, before_id;

-- name: look_at_flow_jobs
-- Of those of these jobs that have neither ended nor been woken: whether one that they wait for has not ended; one that they
-- need and that did not succeed; and whether the cancel of their flow was asked.
SELECT member.job_id,
       EXISTS (SELECT 1 FROM fencerow.flow_edges AS edge WHERE edge.job_id = member.job_id AND edge.state IS NULL),
       broken.name, broken.state, broken.job_id, flow.cancel_requested_at IS NOT NULL
FROM json_each(:ids) AS wanted
JOIN fencerow.flow_jobs AS member ON member.job_id = wanted.value
JOIN fencerow.flows AS flow ON flow.id = member.flow_id
LEFT JOIN fencerow.flow_jobs AS broken
       ON broken.job_id = (SELECT edge.before_id
                           FROM fencerow.flow_edges AS edge
                           WHERE edge.job_id = member.job_id
                             AND edge.policy = 'needs'
                             AND edge.state IN ('failed', 'cancelled')
                           LIMIT 1)
WHERE member.state IS NULL
  AND member.woken_at IS NULL;

-- name: note_flow_jobs_woken
-- What they wait for has ended, and they go. Guard: they were not woken before.
UPDATE fencerow.flow_jobs
SET woken_at = fencerow.now()
WHERE job_id IN (SELECT value FROM json_each(:ids))
  AND woken_at IS NULL
RETURNING job_id;

-- name: tell_again
-- Those that wait for these ends could not be looked at: they are to be told again. Guard: ended still.
UPDATE fencerow.flow_jobs
SET told = 0
WHERE job_id IN (SELECT value FROM json_each(:ids))
  AND state IS NOT NULL
RETURNING job_id;

-- name: end_flows
-- End those of these flows whose jobs have all ended and were told. Guard: not ended before.
UPDATE fencerow.flows AS flow
SET ended_at = fencerow.now()
WHERE flow.id IN (SELECT value FROM json_each(:flows))
  AND flow.ended_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL)
  AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member
                  WHERE member.flow_id = flow.id AND member.state IS NOT NULL AND member.told = 0)
RETURNING id;

-- name: take_callbacks
-- The callbacks of these flows whose time has come: a job has failed; or all have ended, and all have succeeded. A flow that has
-- ended has jobs that live where somebody has revived these alone.
-- Guard: not made before. The mark and the job are one transaction: each is made once.
UPDATE fencerow.flow_callbacks AS callback
SET made_at = fencerow.now()
FROM fencerow.flows AS flow
WHERE flow.id IN (SELECT value FROM json_each(:flows))
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
RETURNING job_id, job;

-- name: note_callback_trouble
-- Why a callback could not be submitted: the doctor tells of it.
UPDATE fencerow.flow_callbacks SET trouble = :trouble WHERE job_id = :id RETURNING job_id;

-- name: flow_jobs_after
-- How far some jobs of flows reach that have not ended, in the order of their ids: what is looked at in one go.
SELECT count(*), max(few.job_id)
FROM (SELECT member.job_id
      FROM fencerow.flow_jobs AS member
      WHERE member.state IS NULL AND member.job_id > :after
      ORDER BY member.job_id
      LIMIT :limit) AS few;

-- name: lock_missed_flow_jobs
-- Find those whose job is not live, though its end was never written: somebody moved or removed it by hand.
SELECT member.job_id
FROM fencerow.flow_jobs AS member
WHERE member.state IS NULL
  AND member.job_id > :after
  AND member.job_id <= :last
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = member.job_id);

-- name: write_missed_flow_ends
-- Write the ends that were missed; of a job that is nowhere nobody knows how it ended. Guard: not ended, and not live.
UPDATE fencerow.flow_jobs AS member
SET state = COALESCE(known.state, 'failed'),
    attempt = known.attempt,
    result = CASE WHEN member.is_read = 1 THEN known.result END,
    error = CASE WHEN known.state IS NULL
                 THEN json_object('type', 'JobGone', 'code', 'job_gone', 'message', 'the job was removed before its flow knew its end')
                 ELSE known.error END,
    ended_at = COALESCE(known.ended_at, fencerow.now())
FROM json_each(:ids) AS missed
LEFT JOIN fencerow.finished_jobs AS known ON known.id = missed.value
WHERE member.job_id = missed.value
  AND member.state IS NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = member.job_id)
RETURNING job_id;
