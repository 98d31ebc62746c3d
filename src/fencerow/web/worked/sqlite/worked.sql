-- Attempts that an endpoint works over HTTP. The file has one writer, so of an answer, an end, a cancel and a suspension one
-- comes first, and the others see it.

-- at: whose wait is over
-- Its endpoint has answered, or may not answer any more.
EXISTS (SELECT 1 FROM fencerow.worked_attempts AS sent
        WHERE sent.job_id = job.id
          AND sent.attempt = job.attempt
          AND (sent.answered_at IS NOT NULL OR sent.until <= fencerow.now()))

-- fragment: may be answered
-- It is the job's attempt still, nobody asked for a cancel, nobody has answered, and its time is not over.
sent.job_id = :id
  AND sent.attempt = :attempt
  AND sent.digest = :digest
  AND sent.answered_at IS NULL
  AND sent.until > fencerow.now()
  AND EXISTS (SELECT 1 FROM fencerow.jobs AS job
              WHERE job.id = sent.job_id
                AND job.attempt = sent.attempt
                AND job.cancel_requested_at IS NULL
                AND (job.state = 'running' OR {{is suspended}}))

-- fragment: of the attempt that holds the job
-- Nobody has answered it yet.
job_id = :id
  AND attempt = :attempt
  AND answered_at IS NULL
  AND EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE {{fence}})

-- name: last_worked
-- How many failures the job has, and what the last attempt before this one left that was sent since the last revive: its
-- number, its outcome and answer, the failures before it, whether its answer was to come later, and is overdue.
-- Guard: the fence. No row: the attempt no longer holds the job.
SELECT job.failures, last.attempt, last.outcome, last.answer, last.failures, last.deferred, last.until <= fencerow.now()
FROM fencerow.jobs AS job
LEFT JOIN fencerow.worked_attempts AS last
    ON last.job_id = job.id
   AND last.attempt = (SELECT max(sent.attempt) FROM fencerow.worked_attempts AS sent
                       WHERE sent.job_id = job.id
                         AND sent.attempt < job.attempt
                         AND (job.revived_at IS NULL OR sent.sent_at > job.revived_at))
WHERE {{fence}};

-- name: open_worked
-- Note that the attempt is about to be sent, so that its endpoint may answer as soon as it has it.
-- Guard: the fence.
INSERT INTO fencerow.worked_attempts (job_id, attempt, digest, sent_at, failures, until, give_up_at, silent_s)
SELECT job.id, job.attempt, :digest, fencerow.now(), job.failures,
       fencerow.now() + CAST(:answer_s * 1000000 AS INTEGER), fencerow.now() + CAST(:answer_s * 1000000 AS INTEGER),
       :silent_s
FROM fencerow.jobs AS job
WHERE {{fence}}
ON CONFLICT (job_id, attempt) DO UPDATE SET digest = excluded.digest
RETURNING attempt;

-- name: defer_worked
-- The endpoint answers later: from now on it is looked at when its time is over.
-- Guard: the fence, and no answer yet.
UPDATE fencerow.worked_attempts
SET deferred = 1,
    until = min(give_up_at, fencerow.now() + CAST(silent_s * 1000000 AS INTEGER)),
    look_at = min(give_up_at, fencerow.now() + CAST(silent_s * 1000000 AS INTEGER))
WHERE {{of the attempt that holds the job}}
RETURNING attempt;

-- name: close_worked
-- The attempt is over by the reply to its request: no answer counts any more.
-- Guard: the fence, and no answer yet. No row: it was answered, or the attempt no longer holds the job.
UPDATE fencerow.worked_attempts
SET answered_at = fencerow.now(), outcome = 'closed', look_at = NULL
WHERE {{of the attempt that holds the job}}
RETURNING attempt;

-- name: worked_answer
-- What an attempt that holds the job was answered, if it was, and whether an answer is overdue. Guard: the fence.
SELECT sent.outcome, sent.answer, sent.until <= fencerow.now()
FROM fencerow.worked_attempts AS sent
JOIN fencerow.jobs AS job ON job.id = sent.job_id AND job.attempt = sent.attempt
WHERE {{fence}};

-- name: find_worked
-- Whether this is the token of this attempt, and its job's name while that is live.
SELECT (SELECT job.name FROM fencerow.jobs AS job WHERE job.id = sent.job_id)
FROM fencerow.worked_attempts AS sent
WHERE sent.job_id = :id
  AND sent.attempt = :attempt
  AND sent.digest = :digest;

-- name: answer_worked
-- Keep the answer of an endpoint.
-- Guard: it may be answered.
UPDATE fencerow.worked_attempts AS sent
SET answered_at = fencerow.now(),
    outcome = :outcome,
    answer = :answer,
    look_at = NULL
WHERE {{may be answered}}
RETURNING attempt;

-- name: beat_worked
-- The endpoint is still at work: it may be silent as long again, but never beyond the end.
-- Guard: it may be answered.
UPDATE fencerow.worked_attempts AS sent
SET until = CASE WHEN deferred THEN min(give_up_at, fencerow.now() + CAST(silent_s * 1000000 AS INTEGER)) ELSE until END,
    look_at = CASE WHEN deferred THEN min(give_up_at, fencerow.now() + CAST(silent_s * 1000000 AS INTEGER)) END
WHERE {{may be answered}}
RETURNING until;

-- name: progress_worked
-- Say how far the attempt is. Guard: it may be answered; the newest attempt's word stands.
INSERT INTO fencerow.job_progress AS known (job_id, attempt, percent, note, at)
SELECT sent.job_id, sent.attempt, :percent, :note, fencerow.now()
FROM fencerow.worked_attempts AS sent
WHERE {{may be answered}}
ON CONFLICT (job_id) DO UPDATE
SET attempt = excluded.attempt, percent = excluded.percent, note = excluded.note, at = excluded.at
WHERE known.attempt <= excluded.attempt
RETURNING attempt;

-- name: worked_standing
-- Why an attempt cannot be answered: its outcome, whether its time is over, and the job's state, attempt and cancel.
SELECT sent.outcome, sent.until <= fencerow.now(), job.state, job.attempt, job.cancel_requested_at IS NOT NULL
FROM fencerow.worked_attempts AS sent
LEFT JOIN fencerow.all_jobs AS job ON job.id = sent.job_id
WHERE sent.job_id = :id
  AND sent.attempt = :attempt;

-- name: due_worked
-- The jobs whose endpoints have been silent for too long, the longest first, at most :limit.
SELECT due.job_id
FROM fencerow.worked_attempts AS due
WHERE due.look_at <= fencerow.now()
ORDER BY due.look_at
LIMIT :limit;

-- name: next_worked
-- In how many seconds the next one is to be looked at; no row: none is.
SELECT (next.look_at - fencerow.now()) / 1000000.0
FROM fencerow.worked_attempts AS next
WHERE next.look_at IS NOT NULL
ORDER BY next.look_at
LIMIT 1;

-- name: worked_seen
-- Of those that were looked at, these were under the locks of their jobs: who is suspended was woken; who is not will look for
-- himself. What belongs to a job that has ended is looked at no more either.
UPDATE fencerow.worked_attempts
SET look_at = NULL
WHERE job_id IN (SELECT value FROM json_each(:looked))
  AND look_at <= fencerow.now()
  AND (job_id IN (SELECT value FROM json_each(:ids))
       OR NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = fencerow.worked_attempts.job_id));

-- name: ended_worked
-- Of the next :limit attempts that are looked at, behind an instant and a job, those whose jobs are no longer live: they ended
-- without the answer. And the last of so many, behind which the next ones stand. The index of those that are looked at has them
-- in this order.
SELECT few.job_id, few.attempt, few.look_at, few.is_ended, few.nth
FROM (SELECT next.*, row_number() OVER (ORDER BY next.look_at, next.job_id) AS nth,
             NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = next.job_id) AS is_ended
      FROM (SELECT sent.job_id, sent.attempt, sent.look_at
            FROM fencerow.worked_attempts AS sent
            WHERE sent.look_at IS NOT NULL
              AND (sent.look_at, sent.job_id) > (:after_us, :after_id)
            ORDER BY sent.look_at, sent.job_id
            LIMIT :limit) AS next) AS few
WHERE few.is_ended
   OR few.nth = :limit;

-- name: take_ended_worked
-- Look at an attempt no more whose job has ended. Guard: it is looked at still, and the job is not live: one caller has it.
UPDATE fencerow.worked_attempts
SET look_at = NULL
WHERE job_id = :id
  AND attempt = :attempt
  AND look_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = fencerow.worked_attempts.job_id)
RETURNING attempt;

-- name: worked_jobs_after
-- How many of the next jobs after this one, in the order of their ids, have anything here, and the last of them.
SELECT count(*), max(few.job_id)
FROM (SELECT DISTINCT sent.job_id FROM fencerow.worked_attempts AS sent WHERE sent.job_id > :after
      ORDER BY sent.job_id LIMIT :limit) AS few;

-- name: purge_worked
-- Remove what is kept here of jobs that are gone. Guard: they are neither live nor finished.
DELETE FROM fencerow.worked_attempts
WHERE job_id > :after
  AND job_id <= :last
  AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = fencerow.worked_attempts.job_id)
RETURNING job_id;

-- name: waiting_worked
-- Of the first :look attempts whose answers are to come later: how many, how many are overdue for :late_s, and the first for how
-- long. The index of those that are looked at finds them.
SELECT count(*), count(*) FILTER (WHERE few.over_s > :late_s), max(few.over_s)
FROM (SELECT (fencerow.now() - sent.look_at) / 1000000.0 AS over_s
      FROM fencerow.worked_attempts AS sent
      WHERE sent.look_at IS NOT NULL
      ORDER BY sent.look_at
      LIMIT :look) AS few;
