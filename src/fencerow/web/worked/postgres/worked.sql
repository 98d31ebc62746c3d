-- Attempts that an endpoint works over HTTP. Whoever answers locks the job's row in an earlier statement than the one that
-- writes, as whoever suspends, ends or takes back the attempt does: so of all of them one comes first, and the others see it.

-- at: whose wait is over
-- Its endpoint has answered, or may not answer any more.
EXISTS (SELECT 1 FROM fencerow.worked_attempts AS sent
        WHERE sent.job_id = job.id
          AND sent.attempt = job.attempt
          AND (sent.answered_at IS NOT NULL OR sent.until <= (SELECT fencerow.now()))
        OFFSET 0)

-- fragment: may be answered
-- It is the job's attempt still, nobody asked for a cancel, nobody has answered, and its time is not over.
sent.job_id = CAST(:id AS uuid)
  AND sent.attempt = CAST(:attempt AS bigint)
  AND sent.digest = CAST(:digest AS text)
  AND sent.answered_at IS NULL
  AND sent.until > (SELECT fencerow.now())
  AND EXISTS (SELECT 1 FROM fencerow.jobs AS job
              WHERE job.id = sent.job_id
                AND job.attempt = sent.attempt
                AND job.cancel_requested_at IS NULL
                AND (job.state = 'running' OR {{is suspended}}))

-- name: last_worked
-- How many failures the job has, and what the last attempt before this one left that was sent since the last revive: its
-- number, its outcome and answer, the failures before it, whether its answer was to come later, and is overdue.
-- Guard: the fence. No row: the attempt no longer holds the job.
SELECT job.failures, last.attempt, last.outcome, CAST(last.answer AS text), last.failures, last.deferred,
       last.until <= (SELECT fencerow.now())
FROM fencerow.jobs AS job
LEFT JOIN LATERAL (
    SELECT * FROM fencerow.worked_attempts AS sent
    WHERE sent.job_id = job.id
      AND sent.attempt < job.attempt
      AND (job.revived_at IS NULL OR sent.sent_at > job.revived_at)
    ORDER BY sent.attempt DESC
    LIMIT 1
) AS last ON true
WHERE {{fence}};

-- name: open_worked
-- Note that the attempt is about to be sent, so that its endpoint may answer as soon as it has it.
-- Guard: the fence.
WITH held AS (
    SELECT job.id, job.attempt, job.failures
    FROM fencerow.jobs AS job
    WHERE {{fence}}
    FOR SHARE
),
clock AS MATERIALIZED (SELECT fencerow.now() AS now)
INSERT INTO fencerow.worked_attempts (job_id, attempt, digest, sent_at, failures, until, give_up_at, silent_s)
SELECT held.id, held.attempt, CAST(:digest AS text), clock.now, held.failures,
       clock.now + fencerow.seconds(CAST(:answer_s AS double precision)),
       clock.now + fencerow.seconds(CAST(:answer_s AS double precision)), CAST(:silent_s AS double precision)
FROM held CROSS JOIN clock
ON CONFLICT (job_id, attempt) DO UPDATE SET digest = EXCLUDED.digest
RETURNING attempt;

-- name: defer_worked
-- The endpoint answers later: from now on it is looked at when its time is over.
-- Guard: the fence, and no answer yet.
{{job held by the fence}}
UPDATE fencerow.worked_attempts AS sent
SET deferred = true,
    until = least(sent.give_up_at, (SELECT fencerow.now()) + fencerow.seconds(sent.silent_s)),
    look_at = least(sent.give_up_at, (SELECT fencerow.now()) + fencerow.seconds(sent.silent_s))
FROM held
WHERE sent.job_id = held.id
  AND sent.attempt = held.attempt
  AND sent.answered_at IS NULL
RETURNING sent.attempt;

-- name: close_worked
-- The attempt is over by the reply to its request: no answer counts any more.
-- Guard: the fence, and no answer yet. No row: it was answered, or the attempt no longer holds the job.
{{job held by the fence}}
UPDATE fencerow.worked_attempts AS sent
SET answered_at = (SELECT fencerow.now()), outcome = 'closed', look_at = NULL
FROM held
WHERE sent.job_id = held.id
  AND sent.attempt = held.attempt
  AND sent.answered_at IS NULL
RETURNING sent.attempt;

-- name: worked_answer
-- What an attempt that holds the job was answered, if it was, and whether an answer is overdue. Guard: the fence.
SELECT sent.outcome, CAST(sent.answer AS text), sent.until <= (SELECT fencerow.now())
FROM fencerow.worked_attempts AS sent
JOIN fencerow.jobs AS job ON job.id = sent.job_id AND job.attempt = sent.attempt
WHERE {{fence}};

-- name: find_worked
-- Whether this is the token of this attempt, and its job's name while that is live.
SELECT (SELECT job.name FROM fencerow.jobs AS job WHERE job.id = sent.job_id)
FROM fencerow.worked_attempts AS sent
WHERE sent.job_id = CAST(:id AS uuid)
  AND sent.attempt = CAST(:attempt AS bigint)
  AND sent.digest = CAST(:digest AS text);

-- name: answer_worked
-- Keep the answer of an endpoint. The job's row is locked by now, so of two answers, or of an answer and a cancel, one counts.
-- Guard: it may be answered.
UPDATE fencerow.worked_attempts AS sent
SET answered_at = (SELECT fencerow.now()),
    outcome = CAST(:outcome AS text),
    answer = CAST(:answer AS json),
    look_at = NULL
WHERE {{may be answered}}
RETURNING sent.attempt;

-- name: beat_worked
-- The endpoint is still at work: it may be silent as long again, but never beyond the end. The job's row is locked by now.
-- Guard: it may be answered.
UPDATE fencerow.worked_attempts AS sent
SET until = CASE WHEN sent.deferred
                 THEN least(sent.give_up_at, (SELECT fencerow.now()) + fencerow.seconds(sent.silent_s))
                 ELSE sent.until
            END,
    look_at = CASE WHEN sent.deferred
                   THEN least(sent.give_up_at, (SELECT fencerow.now()) + fencerow.seconds(sent.silent_s))
              END
WHERE {{may be answered}}
RETURNING fencerow.us(sent.until);

-- name: progress_worked
-- Say how far the attempt is. The job's row is locked by now. Guard: it may be answered; the newest attempt's word stands.
INSERT INTO fencerow.job_progress AS known (job_id, attempt, percent, note, at)
SELECT sent.job_id, sent.attempt, CAST(:percent AS double precision), CAST(:note AS text), (SELECT fencerow.now())
FROM fencerow.worked_attempts AS sent
WHERE {{may be answered}}
ON CONFLICT (job_id) DO UPDATE
SET attempt = EXCLUDED.attempt, percent = EXCLUDED.percent, note = EXCLUDED.note, at = EXCLUDED.at
WHERE known.attempt <= EXCLUDED.attempt
RETURNING known.attempt;

-- name: worked_standing
-- Why an attempt cannot be answered: its outcome, whether its time is over, and the job's state, attempt and cancel.
SELECT sent.outcome, sent.until <= (SELECT fencerow.now()), job.state, job.attempt, job.cancel_requested_at IS NOT NULL
FROM fencerow.worked_attempts AS sent
LEFT JOIN fencerow.all_jobs AS job ON job.id = sent.job_id
WHERE sent.job_id = CAST(:id AS uuid)
  AND sent.attempt = CAST(:attempt AS bigint);

-- name: due_worked
-- The jobs whose endpoints have been silent for too long, the longest first, at most :limit.
SELECT CAST(due.job_id AS text)
FROM fencerow.worked_attempts AS due
WHERE due.look_at <= (SELECT fencerow.now())
ORDER BY due.look_at
LIMIT CAST(:limit AS integer);

-- name: next_worked
-- In how many seconds the next one is to be looked at; no row: none is.
SELECT CAST(extract(epoch FROM next.look_at - (SELECT fencerow.now())) AS double precision)
FROM fencerow.worked_attempts AS next
WHERE next.look_at IS NOT NULL
ORDER BY next.look_at
LIMIT 1;

-- name: worked_seen
-- Of those that were looked at, these were under the locks of their jobs: who is suspended was woken; who is not will look for
-- himself. What belongs to a job that has ended is looked at no more either.
UPDATE fencerow.worked_attempts AS sent
SET look_at = NULL
WHERE sent.job_id = ANY(CAST(:looked AS uuid[]))
  AND COALESCE(sent.look_at <= (SELECT fencerow.now()), false)  -- no condition of an index: found by their jobs
  AND (sent.job_id = ANY(CAST(:ids AS uuid[]))
       OR NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = sent.job_id));

-- name: ended_worked
-- Of the next :limit attempts that are looked at, behind an instant and a job, those whose jobs are no longer live: they ended
-- without the answer. And the last of so many, behind which the next ones stand. The index of those that are looked at has them
-- in this order.
SELECT CAST(few.job_id AS text), few.attempt, fencerow.us(few.look_at), few.is_ended, few.nth
FROM (SELECT next.*, row_number() OVER (ORDER BY next.look_at, next.job_id) AS nth,
             NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = next.job_id) AS is_ended
      FROM (SELECT sent.job_id, sent.attempt, sent.look_at
            FROM fencerow.worked_attempts AS sent
            WHERE sent.look_at IS NOT NULL
              AND (sent.look_at, sent.job_id) > (fencerow.at(CAST(:after_us AS bigint)), CAST(:after_id AS uuid))
            ORDER BY sent.look_at, sent.job_id
            LIMIT CAST(:limit AS integer)) AS next) AS few
WHERE few.is_ended
   OR few.nth = CAST(:limit AS integer);

-- name: take_ended_worked
-- Look at an attempt no more whose job has ended. Guard: it is looked at still, and the job is not live: one caller has it.
UPDATE fencerow.worked_attempts AS sent
SET look_at = NULL
WHERE sent.job_id = CAST(:id AS uuid)
  AND sent.attempt = CAST(:attempt AS bigint)
  AND sent.look_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = sent.job_id)
RETURNING sent.attempt;

-- name: worked_jobs_after
-- How many of the next jobs after this one, in the order of their ids, have anything here, and the last of them.
SELECT count(*), CAST(max(CAST(few.job_id AS text)) AS text)
FROM (SELECT DISTINCT sent.job_id FROM fencerow.worked_attempts AS sent WHERE sent.job_id > CAST(:after AS uuid)
      ORDER BY sent.job_id LIMIT CAST(:limit AS integer)) AS few;

-- name: purge_worked
-- Remove what is kept here of jobs that are gone. Guard: they are neither live nor finished.
DELETE FROM fencerow.worked_attempts AS sent
WHERE sent.job_id > CAST(:after AS uuid)
  AND sent.job_id <= CAST(:last AS uuid)
  AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = sent.job_id OFFSET 0)  -- each is looked up
RETURNING CAST(sent.job_id AS text);

-- name: waiting_worked
-- Of the first :look attempts whose answers are to come later: how many, how many are overdue for :late_s, and the first for how
-- long. The index of those that are looked at finds them.
SELECT count(*),
       count(*) FILTER (WHERE few.over_s > CAST(:late_s AS double precision)),
       max(few.over_s)
FROM (SELECT CAST(extract(epoch FROM (SELECT fencerow.now()) - sent.look_at) AS double precision) AS over_s
      FROM fencerow.worked_attempts AS sent
      WHERE sent.look_at IS NOT NULL
      ORDER BY sent.look_at
      LIMIT CAST(:look AS integer)) AS few;
