-- Moves of whole flows, in portions. Whoever revives locks the flow first, as whoever wakes does.

-- name: ask_flow_cancel
-- Note that a flow is to be cancelled: whoever wakes cancels its jobs instead. Guard: not ended, or jobs of it were
-- revived alone. Asking again keeps the first.
UPDATE fencerow.flows AS flow
SET cancel_requested_at = COALESCE(flow.cancel_requested_at, (SELECT fencerow.now())),
    cancel_requested_by = COALESCE(flow.cancel_requested_by, CAST(:actor AS text))
WHERE flow.id = CAST(:id AS uuid)
  AND (flow.ended_at IS NULL
       OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL))
RETURNING CAST(flow.id AS text);

-- name: live_flow_jobs
-- Jobs of a flow that have not ended, before a place, those behind first.
SELECT CAST(member.job_id AS text), member.place
FROM fencerow.flow_jobs AS member
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.state IS NULL
  AND member.place < CAST(:before AS integer)
ORDER BY member.place DESC
LIMIT CAST(:limit AS integer);

-- name: lock_flow
-- Lock one flow: nobody wakes its jobs meanwhile, or removes it; and whether its cancel was asked.
SELECT CAST(flow.id AS text), flow.cancel_requested_at IS NOT NULL
FROM fencerow.flows AS flow
WHERE flow.id = CAST(:id AS uuid)
FOR UPDATE;

-- name: flow_jobs_to_revive
-- Jobs of a flow that failed or were cancelled, behind a place, each behind those it waits for.
SELECT CAST(member.job_id AS text), member.place
FROM fencerow.flow_jobs AS member
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.state IN ('failed', 'cancelled')
  AND member.place > CAST(:after AS integer)
ORDER BY member.place
LIMIT CAST(:limit AS integer);

-- name: lock_flow_jobs_to_revive
-- Lock what a portion revives, and wait for whoever has locked one of them: without it those behind would wait for ever.
-- Guard for the revive: nobody else revives or removes one of them from here on.
SELECT CAST(job.id AS text)
FROM fencerow.finished_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
ORDER BY job.id
FOR UPDATE;

-- name: gone_flow_jobs
-- One between two places that failed or was cancelled and is no longer there.
SELECT CAST(member.job_id AS text)
FROM fencerow.flow_jobs AS member
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.state IN ('failed', 'cancelled')
  AND member.place > CAST(:after AS integer)
  AND member.place <= CAST(:last AS integer)
  AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = member.job_id)
LIMIT 1;

-- name: flow_jobs_too_soon
-- One between two places before which another job must end (:ids: none is revived in this statement).
SELECT CAST(member.job_id AS text), CAST({{what must end before it is revived}} AS text)
FROM fencerow.flow_jobs AS member
JOIN fencerow.finished_jobs AS job ON job.id = member.job_id
WHERE member.flow_id = CAST(:id AS uuid)
  AND member.state IN ('failed', 'cancelled')
  AND member.place > CAST(:after AS integer)
  AND member.place <= CAST(:last AS integer)
  AND {{what must end before it is revived}} IS NOT NULL
LIMIT 1;

-- name: reopen_flow
-- A flow of which jobs run again has not ended, and nobody asks for its cancel any more. Guard: it is locked.
UPDATE fencerow.flows AS flow
SET ended_at = NULL, cancel_requested_at = NULL, cancel_requested_by = NULL
WHERE flow.id = CAST(:id AS uuid)
RETURNING CAST(flow.id AS text);

-- name: reopen_flow_edges
-- Those that are revived wait again for those that did not succeed: these run again too.
UPDATE fencerow.flow_edges AS edge
SET state = NULL
WHERE edge.job_id = ANY(CAST(:ids AS uuid[]))
  AND edge.state IN ('failed', 'cancelled')
RETURNING CAST(edge.job_id AS text);

-- name: hold_flow_jobs
-- Let those of these revived jobs wait, at no gate, that wait for others. In the transaction that revived them.
-- Guard: nobody has claimed them since; and an edge that is open. The timeline tells that they wait again.
WITH held AS (
    UPDATE fencerow.jobs AS job
    SET state = 'waiting', gate = NULL
    WHERE job.id = ANY(CAST(:ids AS uuid[]))
      AND job.state IN ('waiting', 'queued')
      AND EXISTS (SELECT 1 FROM fencerow.flow_edges AS edge WHERE edge.job_id = job.id AND edge.state IS NULL OFFSET 0)
    RETURNING job.id, job.attempt
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
    SELECT held.id, held.attempt, (SELECT fencerow.now()), 'suspended', CAST(:actor AS text) FROM held
)
SELECT CAST(held.id AS text) FROM held;

-- name: unwake_flow_jobs
-- They are to be woken again.
UPDATE fencerow.flow_jobs AS member
SET woken_at = NULL
WHERE member.job_id = ANY(CAST(:ids AS uuid[]))
RETURNING CAST(member.job_id AS text);

-- name: tell_ends_before
-- Of those that these held jobs wait for some have ended again, and were told before their edges were opened: these ends are to
-- be told once more, or those behind them would wait for ever. Guard: ended still; the end of one that runs again is to come.
UPDATE fencerow.flow_jobs AS before
SET told = false
WHERE before.job_id = ANY(ARRAY(SELECT edge.before_id FROM fencerow.flow_edges AS edge WHERE edge.job_id = ANY(CAST(:ids AS uuid[])) AND edge.state IS NULL))
  AND before.state IS NOT NULL
  AND before.told
RETURNING CAST(before.job_id AS text);
