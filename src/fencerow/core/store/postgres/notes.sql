-- What a running attempt writes about itself. Each row is made by selecting from the job FOR SHARE with the fence:
-- a plain INSERT would let a stale attempt write after a newer claim.

-- name: progress
-- Say how far a running attempt is. Guard: the fence; the newest attempt's word stands.
{{job held by the fence}}
INSERT INTO fencerow.job_progress AS known (job_id, attempt, percent, note, at)
SELECT held.id, held.attempt, CAST(:percent AS double precision), CAST(:note AS text), fencerow.now()
FROM held
ON CONFLICT (job_id) DO UPDATE
SET attempt = EXCLUDED.attempt, percent = EXCLUDED.percent, note = EXCLUDED.note, at = EXCLUDED.at
WHERE known.attempt <= EXCLUDED.attempt
RETURNING job_id;

-- name: log
-- Keep a line with the job. Guard: the fence.
{{job held by the fence}}
INSERT INTO fencerow.job_logs (job_id, attempt, at, level, message)
SELECT held.id, held.attempt, fencerow.now(), :level, :message
FROM held
RETURNING job_id;

-- name: bound_idle
-- Let the server end this transaction when its worker has frozen or was cut off: what it locks would wait for ever.
-- Idle until the job's deadline, no healthy handler goes further; and a client that is gone is noticed in half a minute.
-- Each setting ends with the transaction. One that the operator has made for idle transactions stays.
SELECT set_config(
        'idle_in_transaction_session_timeout',
        CASE
            WHEN current_setting('idle_in_transaction_session_timeout') <> '0'
                THEN current_setting('idle_in_transaction_session_timeout')
            ELSE CAST(CAST(least(2000000000, 1000 * greatest(
                1, COALESCE(extract(epoch FROM job.deadline_at - fencerow.now()), 3600)
            )) AS bigint) AS text)
        END,
        true
    ),
    set_config('tcp_keepalives_idle', '10', true),
    set_config('tcp_keepalives_interval', '5', true),
    set_config('tcp_keepalives_count', '3', true)
FROM fencerow.jobs AS job
WHERE job.id = CAST(:id AS uuid);

-- name: hold_fence
-- Lock the job against a newer claim until the transaction ends, so that what follows in it is this attempt's word.
-- FOR SHARE waits for a claim or an end that is under way, and then meets what came of it. Guard: the fence.
-- The transaction may be the user's, and everybody waits for it: idle, it lasts no longer than the attempt may.
SELECT job.cancel_requested_at IS NOT NULL,
    CASE
        WHEN current_setting('idle_in_transaction_session_timeout') = '0' AND job.deadline_at IS NOT NULL
            THEN set_config(
                'idle_in_transaction_session_timeout',
                CAST(CAST(least(2000000000, 1000 * greatest(
                    1, extract(epoch FROM job.deadline_at - fencerow.now())
                )) AS bigint) AS text),
                true
            )
    END
FROM fencerow.jobs AS job
WHERE {{fence}}
FOR SHARE;

-- name: check_fence
-- Whether this attempt still holds its job, and whether a cancel was asked.
SELECT job.cancel_requested_at IS NOT NULL
FROM fencerow.jobs AS job
WHERE {{fence}};
