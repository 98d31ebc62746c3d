-- Moves of whole flows, in portions. The file has one writer.

-- name: ask_flow_cancel
-- Note that a flow is to be cancelled: whoever wakes cancels its jobs instead. Guard: not ended, or jobs of it were
-- revived alone. Asking again keeps the first.
UPDATE fencerow.flows AS flow
SET cancel_requested_at = COALESCE(flow.cancel_requested_at, fencerow.now()),
    cancel_requested_by = COALESCE(flow.cancel_requested_by, :actor)
WHERE flow.id = :id
  AND (flow.ended_at IS NULL
       OR EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL))
RETURNING id;

-- name: live_flow_jobs
-- Jobs of a flow that have not ended, before a place, those behind first.
SELECT member.job_id, member.place
FROM fencerow.flow_jobs AS member
WHERE member.flow_id = :id
  AND member.state IS NULL
  AND member.place < :before
ORDER BY member.place DESC
LIMIT :limit;

-- name: lock_flow
-- One flow, and whether its cancel was asked; the write lock is held already.
SELECT flow.id, flow.cancel_requested_at IS NOT NULL FROM fencerow.flows AS flow WHERE flow.id = :id;

-- name: flow_jobs_to_revive
-- Jobs of a flow that failed or were cancelled, behind a place, each behind those it waits for.
SELECT member.job_id, member.place
FROM fencerow.flow_jobs AS member
WHERE member.flow_id = :id
  AND member.state IN ('failed', 'cancelled')
  AND member.place > :after
ORDER BY member.place
LIMIT :limit;

-- name: lock_flow_jobs_to_revive
-- What a portion revives; the write lock is held already.
SELECT job.id
FROM fencerow.finished_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
ORDER BY job.id;

-- name: gone_flow_jobs
-- One between two places that failed or was cancelled and is no longer there.
SELECT member.job_id
FROM fencerow.flow_jobs AS member
WHERE member.flow_id = :id
  AND member.state IN ('failed', 'cancelled')
  AND member.place > :after
  AND member.place <= :last
  AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = member.job_id)
LIMIT 1;

-- name: flow_jobs_too_soon
-- One between two places before which another job must end (:ids: none is revived in this statement).
SELECT member.job_id, {{what must end before it is revived}}
FROM fencerow.flow_jobs AS member
JOIN fencerow.finished_jobs AS job ON job.id = member.job_id
WHERE member.flow_id = :id
  AND member.state IN ('failed', 'cancelled')
  AND member.place > :after
  AND member.place <= :last
  AND {{what must end before it is revived}} IS NOT NULL
LIMIT 1;

-- name: reopen_flow
-- A flow of which jobs run again has not ended, and nobody asks for its cancel any more. Guard: it is locked.
UPDATE fencerow.flows AS flow
SET ended_at = NULL, cancel_requested_at = NULL, cancel_requested_by = NULL
WHERE flow.id = :id
RETURNING id;

-- name: reopen_flow_edges
-- Those that are revived wait again for those that did not succeed: these run again too.
UPDATE fencerow.flow_edges AS edge
SET state = NULL
WHERE edge.job_id IN (SELECT value FROM json_each(:ids))
  AND edge.state IN ('failed', 'cancelled')
RETURNING job_id;

-- name: hold_flow_jobs
-- Let those of these revived jobs wait, at no gate, that wait for others. In the transaction that revived them.
-- Guard: nobody has claimed them since; and an edge that is open. The timeline tells that they wait again.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor)
SELECT job.id, job.attempt, fencerow.now(), 'suspended', :actor
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('waiting', 'queued')
  AND EXISTS (SELECT 1 FROM fencerow.flow_edges AS edge WHERE edge.job_id = job.id AND edge.state IS NULL);
UPDATE fencerow.jobs AS job
SET state = 'waiting', gate = NULL
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('waiting', 'queued')
  AND EXISTS (SELECT 1 FROM fencerow.flow_edges AS edge WHERE edge.job_id = job.id AND edge.state IS NULL)
RETURNING id;

-- name: unwake_flow_jobs
-- They are to be woken again.
UPDATE fencerow.flow_jobs AS member
SET woken_at = NULL
WHERE member.job_id IN (SELECT value FROM json_each(:ids))
RETURNING job_id;

-- name: tell_ends_before
-- Of those that these held jobs wait for some have ended again, and were told before their edges were opened: these ends are to
-- be told once more, or those behind them would wait for ever. Guard: ended still; the end of one that runs again is to come.
UPDATE fencerow.flow_jobs AS before
SET told = 0
WHERE before.job_id IN (SELECT edge.before_id FROM fencerow.flow_edges AS edge WHERE edge.job_id IN (SELECT value FROM json_each(:ids)) AND edge.state IS NULL)
  AND before.state IS NOT NULL
  AND before.told = 1
RETURNING job_id;
