-- What people are asked by an address that answers once. The secret of an address is kept nowhere, only its digest.

-- name: make_approval
-- Keep what is asked. Guard: the job lives, and is asked few such things. No row: one of these does not hold.
INSERT INTO fencerow.job_approvals (id, job_id, signal, asks, digest, made_by, made_at, expires_at)
SELECT :approval_id, job.id, :signal, :asks, :digest, :actor, fencerow.now(),
       fencerow.now() + CAST(:expires_s * 1000000 AS INTEGER)
FROM fencerow.jobs AS job
WHERE job.id = :id
  AND (SELECT count(*) FROM fencerow.job_approvals AS known WHERE known.job_id = job.id) < :most
RETURNING expires_at;

-- name: approval
-- What is asked under this address, and whether it may still be answered. No row: there is no such address.
SELECT asked.job_id, asked.signal, asked.asks, asked.expires_at, asked.answer, asked.expires_at <= fencerow.now(),
       EXISTS (SELECT 1 FROM fencerow.job_approvals AS other
               WHERE other.job_id = asked.job_id AND other.signal = asked.signal AND other.answer IS NOT NULL),
       (SELECT job.name FROM fencerow.jobs AS job WHERE job.id = asked.job_id),
       asked.answered_at IS NOT NULL AND asked.answer IS NULL
FROM fencerow.job_approvals AS asked
WHERE asked.id = :approval_id
  AND asked.digest = :digest;

-- name: answer_approval
-- Mark the address as used. Guard: nobody has answered this address, or another one for the same signal of the job, and it has not
-- expired.
UPDATE fencerow.job_approvals
SET answered_at = fencerow.now(), answer = :answer
WHERE id = :approval_id
  AND digest = :digest
  AND answered_at IS NULL
  AND expires_at > fencerow.now()
  AND NOT EXISTS (SELECT 1 FROM fencerow.job_approvals AS other
                  WHERE other.job_id = fencerow.job_approvals.job_id AND other.signal = fencerow.job_approvals.signal
                    AND other.id <> fencerow.job_approvals.id AND other.answer IS NOT NULL)
RETURNING job_id, signal;

-- name: withdraw_approvals
-- The wait for this signal ended by its time: no address for it answers any more. In the transaction that remembers that.
UPDATE fencerow.job_approvals
SET answered_at = fencerow.now()
WHERE job_id = :id
  AND signal = :signal
  AND answered_at IS NULL;
