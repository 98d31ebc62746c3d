-- What jobs wait for, and the signals that are sent to them.

-- at: whose wait is over
-- Its time has come, or a signal that it waits for is there. What an earlier attempt waited for plays no part.
EXISTS (SELECT 1 FROM fencerow.job_waits AS wait
        WHERE wait.job_id = job.id
          AND wait.attempt = job.attempt
          AND (wait.until <= (SELECT fencerow.now())
               OR EXISTS (SELECT 1 FROM fencerow.job_signals AS sent
                          WHERE sent.job_id = job.id AND sent.name = wait.signal AND sent.taken_as IS NULL OFFSET 0))
        OFFSET 0)

-- name: note_wait
-- Write for what the attempt waits. The same wait of an earlier attempt is taken over: its time runs since then. The last
-- column tells whether the time has come.
-- Guard: the fence.
WITH held AS (
    SELECT job.id, job.attempt
    FROM fencerow.jobs AS job
    WHERE job.id = CAST(:id AS uuid)
      AND job.state IS NOT DISTINCT FROM 'running'
      AND job.holder = CAST(:holder AS uuid)
      AND job.attempt = CAST(:attempt AS bigint)
    FOR SHARE
),
clock AS MATERIALIZED (SELECT fencerow.now() AS now)
INSERT INTO fencerow.job_waits AS known (job_id, name, attempt, signal, until, look_at, since)
SELECT held.id, CAST(:name AS text), held.attempt, CAST(:signal AS text), wanted.until, wanted.until, clock.now
FROM held
CROSS JOIN clock
CROSS JOIN LATERAL (
    SELECT COALESCE(fencerow.at(CAST(:until_us AS bigint)),
                    clock.now + fencerow.seconds(CAST(:delay_s AS double precision))) AS until
) AS wanted
ON CONFLICT (job_id, name) DO UPDATE SET attempt = EXCLUDED.attempt, look_at = known.until
RETURNING fencerow.us(known.until), COALESCE(known.until <= (SELECT fencerow.now()), false);

-- name: forget_wait
-- The wait is over, and remembered in this transaction.
DELETE FROM fencerow.job_waits AS wait
WHERE wait.job_id = CAST(:id AS uuid)
  AND wait.name = :name;

-- name: take_signal
-- Take the first signal of this name that nobody has taken, and remember it as a step of the run: its data as `data`, so
-- that they are never taken for what is remembered of a wait whose time came.
-- Guard: the fence. A wait that is remembered already takes no other one. Who takes locks the signal first: of two waits that run
-- beside each other the second waits here, and takes the next one.
WITH held AS (
    SELECT job.id, job.attempt
    FROM fencerow.jobs AS job
    WHERE job.id = CAST(:id AS uuid)
      AND job.state IS NOT DISTINCT FROM 'running'
      AND job.holder = CAST(:holder AS uuid)
      AND job.attempt = CAST(:attempt AS bigint)
    FOR SHARE
),
taken AS (
    UPDATE fencerow.job_signals AS sent
    SET taken_as = CAST(:name AS text)
    FROM held
    WHERE sent.seq = (SELECT first.seq FROM fencerow.job_signals AS first
                      WHERE first.job_id = CAST(:id AS uuid) AND first.name = CAST(:signal AS text)
                        AND first.taken_as IS NULL
                      ORDER BY first.seq LIMIT 1 FOR UPDATE)
      AND NOT EXISTS (SELECT 1 FROM fencerow.job_steps AS known
                      WHERE known.job_id = CAST(:id AS uuid) AND known.name = CAST(:name AS text))
    RETURNING sent.job_id, sent.data, held.attempt
)
INSERT INTO fencerow.job_steps (job_id, name, kind, seq, beside, result, attempt, at)
SELECT taken.job_id, CAST(:name AS text), 'signal', CAST(:seq AS integer), CAST(:beside AS boolean),
       CAST('{"data":' || CAST(taken.data AS text) || '}' AS json),
       taken.attempt, (SELECT fencerow.now())
FROM taken
RETURNING CAST(result AS text);

-- name: count_signals
-- How many signals nobody has taken yet, and whether this one is among all that were sent. The job's row is locked by now.
SELECT count(*) FILTER (WHERE sent.taken_as IS NULL), COALESCE(bool_or(sent.id = CAST(:signal_id AS uuid)), false)
FROM fencerow.job_signals AS sent
WHERE sent.job_id = CAST(:id AS uuid);

-- name: send_signal
-- Keep a signal for the job. Guard: its id, so that what is sent again is kept once. The job's row is locked by now.
INSERT INTO fencerow.job_signals (id, job_id, name, data, sent_by, sent_at)
VALUES (CAST(:signal_id AS uuid), CAST(:id AS uuid), :name, CAST(:data AS json), CAST(:actor AS text),
        (SELECT fencerow.now()))
ON CONFLICT (id) DO NOTHING
RETURNING CAST(id AS text);

-- name: due_waits
-- The jobs whose waits are to be looked at, the longest due first, at most :limit waits; and when the next is due.
SELECT CAST(due.job_id AS text), fencerow.us(due.look_at)
FROM fencerow.job_waits AS due
WHERE due.look_at <= (SELECT fencerow.now())
ORDER BY due.look_at
LIMIT CAST(:limit AS integer);

-- name: free_due_waits
-- The same, past those whose jobs somebody else has locked: a stranger who holds many hides no other. The jobs are locked here, so that
-- the walk ends with the last that is wanted. The waits are in their order before a job is looked at (OFFSET 0): none is locked for nothing.
SELECT CAST(due.job_id AS text), fencerow.us(due.look_at)
FROM (SELECT * FROM fencerow.job_waits AS each
      WHERE each.look_at <= (SELECT fencerow.now())
      ORDER BY each.look_at
      OFFSET 0) AS due
CROSS JOIN LATERAL (
    SELECT job.id FROM fencerow.jobs AS job WHERE job.id = due.job_id
    OFFSET 0
    FOR UPDATE SKIP LOCKED
) AS free
LIMIT CAST(:limit AS integer);

-- name: next_wait
-- In how many seconds the next wait is to be looked at; no row: nobody waits for a time.
SELECT CAST(extract(epoch FROM next.look_at - (SELECT fencerow.now())) AS double precision)
FROM fencerow.job_waits AS next
WHERE next.look_at IS NOT NULL
ORDER BY next.look_at
LIMIT 1;

-- name: waits_seen
-- Of those that were looked at, these were under the locks of their jobs: who is suspended was woken; who is not will look for
-- himself. An attempt that waits once more writes it anew. What belongs to a job that has ended is looked at no more either.
UPDATE fencerow.job_waits AS wait
SET look_at = NULL
WHERE wait.job_id = ANY(CAST(:looked AS uuid[]))
  AND COALESCE(wait.look_at <= (SELECT fencerow.now()), false)  -- no condition of an index: found by their jobs
  AND (wait.job_id = ANY(CAST(:ids AS uuid[]))
       OR NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = wait.job_id))
RETURNING CAST(wait.job_id AS text);

-- name: waiting_for
-- What suspended jobs wait for, those first whose time comes first. Of one job, or of all.
SELECT CAST(wait.job_id AS text), job.name, job.queue, wait.name, wait.signal, fencerow.us(wait.until),
       fencerow.us(wait.since), fencerow.us((SELECT fencerow.now()))
FROM fencerow.job_waits AS wait
JOIN fencerow.jobs AS job ON job.id = wait.job_id AND job.attempt = wait.attempt
WHERE job.state = 'waiting'
  AND job.gate IS NULL
  AND (CAST(:id AS uuid) IS NULL OR wait.job_id = CAST(:id AS uuid))
  AND (CAST(:signal AS text) IS NULL OR wait.signal = CAST(:signal AS text))
ORDER BY wait.until NULLS LAST, wait.job_id, wait.name
LIMIT CAST(:limit AS integer);

-- name: signals_of
-- The signals that were sent to a job, in order.
SELECT CAST(sent.id AS text), sent.name, CAST(sent.data AS text), sent.sent_by, fencerow.us(sent.sent_at), sent.taken_as
FROM fencerow.job_signals AS sent
WHERE sent.job_id = CAST(:id AS uuid)
ORDER BY sent.seq;
