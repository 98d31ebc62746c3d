-- What people are asked by an address that answers once. The secret of an address is kept nowhere, only its digest.

-- name: make_approval
-- Keep what is asked. Guard: the job lives, and is asked few such things. No row: one of these does not hold.
INSERT INTO fencerow.job_approvals (id, job_id, signal, asks, digest, made_by, made_at, expires_at)
SELECT CAST(:approval_id AS uuid), job.id, CAST(:signal AS text), CAST(:asks AS text), CAST(:digest AS text),
       CAST(:actor AS text), clock.now, clock.now + fencerow.seconds(CAST(:expires_s AS double precision))
FROM fencerow.jobs AS job
CROSS JOIN (SELECT fencerow.now() AS now) AS clock
WHERE job.id = CAST(:id AS uuid)
  AND (SELECT count(*) FROM fencerow.job_approvals AS known WHERE known.job_id = job.id) < CAST(:most AS integer)
RETURNING fencerow.us(expires_at);

-- name: approval
-- What is asked under this address, and whether it may still be answered. No row: there is no such address.
SELECT CAST(asked.job_id AS text), asked.signal, asked.asks, fencerow.us(asked.expires_at), asked.answer,
       asked.expires_at <= (SELECT fencerow.now()),
       EXISTS (SELECT 1 FROM fencerow.job_approvals AS other
               WHERE other.job_id = asked.job_id AND other.signal = asked.signal AND other.answer IS NOT NULL),
       (SELECT job.name FROM fencerow.jobs AS job WHERE job.id = asked.job_id),
       asked.answered_at IS NOT NULL AND asked.answer IS NULL
FROM fencerow.job_approvals AS asked
WHERE asked.id = CAST(:approval_id AS uuid)
  AND asked.digest = CAST(:digest AS text);

-- name: answer_approval
-- Mark the address as used. Guard: nobody has answered this address, or another one for the same signal of the job, and it has not
-- expired. The job's row is locked by now, so of two addresses one wins.
UPDATE fencerow.job_approvals AS asked
SET answered_at = (SELECT fencerow.now()), answer = CAST(:answer AS boolean)
WHERE asked.id = CAST(:approval_id AS uuid)
  AND asked.digest = CAST(:digest AS text)
  AND asked.answered_at IS NULL
  AND asked.expires_at > (SELECT fencerow.now())
  AND NOT EXISTS (SELECT 1 FROM fencerow.job_approvals AS other
                  WHERE other.job_id = asked.job_id AND other.signal = asked.signal AND other.id <> asked.id
                    AND other.answer IS NOT NULL)
RETURNING CAST(asked.job_id AS text), asked.signal;

-- name: withdraw_approvals
-- The wait for this signal ended by its time: no address for it answers any more. In the transaction that remembers that: the
-- fence holds, and the job's row is locked against whoever answers.
UPDATE fencerow.job_approvals AS asked
SET answered_at = (SELECT fencerow.now())
WHERE asked.job_id = CAST(:id AS uuid)
  AND asked.signal = CAST(:signal AS text)
  AND asked.answered_at IS NULL;
