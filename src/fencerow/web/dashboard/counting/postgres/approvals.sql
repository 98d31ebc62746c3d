-- What people are asked. However many were asked ever, a page looks at a bounded number of those without an answer.

-- name: open_approvals
-- Of the next :look that nobody has answered in time, in the order in which their time is over, those that can be answered still:
-- the job lives, and no other address of its question was used. At the end a row without an id: the last that was looked at.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
few AS MATERIALIZED (
    SELECT asked.id, asked.job_id, asked.signal, asked.asks, asked.made_by, asked.made_at, asked.expires_at
    FROM fencerow.job_approvals AS asked
    WHERE asked.answered_at IS NULL
      AND asked.expires_at > (SELECT clock.now FROM clock)
      AND (asked.expires_at, asked.id) > (fencerow.at(CAST(:after_us AS bigint)), CAST(:after_id AS uuid))
    ORDER BY asked.expires_at, asked.id
    LIMIT CAST(:look AS integer)
),
open AS (
    SELECT few.id, few.job_id, job.name, job.state, few.signal, few.asks, few.made_by, few.made_at, few.expires_at
    FROM few
    JOIN fencerow.jobs AS job ON job.id = few.job_id
    WHERE NOT EXISTS (SELECT 1 FROM fencerow.job_approvals AS other
                      WHERE other.job_id = few.job_id AND other.signal = few.signal AND other.answered_at IS NOT NULL)
    ORDER BY few.expires_at, few.id
    LIMIT CAST(:limit AS integer)
)
SELECT CAST(open.id AS text), CAST(open.job_id AS text), open.name, open.state, open.signal, open.asks, open.made_by,
       fencerow.us(open.made_at), fencerow.us(open.expires_at), CAST(NULL AS text), CAST(NULL AS bigint)
FROM open
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, fencerow.us((SELECT clock.now FROM clock)),
       (SELECT fencerow.us(max(few.expires_at)) FROM few),
       (SELECT CAST(last.id AS text) FROM few AS last ORDER BY last.expires_at DESC, last.id DESC LIMIT 1),
       (SELECT count(*) FROM few);

-- name: approvals_of_job
-- All that was asked for one job, the newest first, and what became of it; the clock at the end.
SELECT CAST(asked.id AS text), CAST(asked.job_id AS text), job.name, job.state, asked.signal, asked.asks, asked.made_by,
       fencerow.us(asked.made_at), fencerow.us(asked.expires_at),
       CASE WHEN asked.answered_at IS NOT NULL THEN CASE WHEN asked.answer THEN 'approved' ELSE 'refused' END
            WHEN EXISTS (SELECT 1 FROM fencerow.job_approvals AS other
                         WHERE other.job_id = asked.job_id AND other.signal = asked.signal AND other.answered_at IS NOT NULL)
            THEN 'answered by another address'
            WHEN asked.expires_at <= (SELECT fencerow.now()) THEN 'expired'
            WHEN job.id IS NULL THEN 'its job has ended'
       END,
       fencerow.us(asked.answered_at)
FROM (SELECT * FROM fencerow.job_approvals AS few
      WHERE few.job_id = CAST(:job AS uuid)
      ORDER BY few.made_at DESC, few.id DESC
      LIMIT CAST(:limit AS integer)) AS asked
LEFT JOIN fencerow.jobs AS job ON job.id = asked.job_id
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT fencerow.us(fencerow.now())), NULL, NULL, NULL;

-- name: approval_digest
-- The digest of the secret of what is asked under this id, by which who is logged in answers as who has the address does.
SELECT asked.digest FROM fencerow.job_approvals AS asked WHERE asked.id = CAST(:approval_id AS uuid);
