-- Jobs worked over HTTP, for pages: those whose endpoints answer later, and what became of the newest attempts.

-- name: worked_waits
-- Attempts whose answers are to come later, those first whose time is over first, behind an instant and a job. The index of those
-- that are looked at has them in this order. At the end a row with the clock.
SELECT CAST(few.job_id AS text), few.attempt, job.name, job.queue, fencerow.us(few.sent_at), fencerow.us(few.look_at),
       fencerow.us(few.give_up_at), progress.percent, progress.note
FROM (SELECT sent.job_id, sent.attempt, sent.sent_at, sent.look_at, sent.give_up_at
      FROM fencerow.worked_attempts AS sent
      WHERE sent.look_at IS NOT NULL
        AND (sent.look_at, sent.job_id) > (fencerow.at(CAST(:after_us AS bigint)), CAST(:after_id AS uuid))
      ORDER BY sent.look_at, sent.job_id
      LIMIT CAST(:limit AS integer)) AS few
LEFT JOIN fencerow.jobs AS job ON job.id = few.job_id
LEFT JOIN fencerow.job_progress AS progress ON progress.job_id = few.job_id AND progress.attempt = few.attempt
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, (SELECT fencerow.us(fencerow.now())), NULL, NULL, NULL;

-- name: worked_lately
-- Of the newest :look attempts, by the id of their job, how each kind of job stands: how many were sent, wait, are late, were
-- answered by the reply itself, succeeded or failed by the callback, and were never answered; and when the latest was sent.
SELECT COALESCE(named.name, ''), count(*),
       count(*) FILTER (WHERE few.look_at IS NOT NULL),
       count(*) FILTER (WHERE few.look_at <= (SELECT fencerow.now())),
       count(*) FILTER (WHERE few.outcome = 'closed'),
       count(*) FILTER (WHERE few.outcome = 'succeeded'),
       count(*) FILTER (WHERE few.outcome = 'failed'),
       count(*) FILTER (WHERE few.deferred AND few.outcome IS NULL AND few.look_at IS NULL),
       fencerow.us(max(few.sent_at))
FROM (SELECT sent.job_id, sent.sent_at, sent.look_at, sent.deferred, sent.outcome
      FROM fencerow.worked_attempts AS sent
      ORDER BY sent.job_id DESC, sent.attempt DESC
      LIMIT CAST(:look AS integer)) AS few
LEFT JOIN LATERAL (SELECT job.name FROM fencerow.jobs AS job WHERE job.id = few.job_id
                   UNION ALL
                   SELECT job.name FROM fencerow.finished_jobs AS job WHERE job.id = few.job_id
                   LIMIT 1) AS named ON true
GROUP BY 1
ORDER BY 1
LIMIT CAST(:limit AS integer);
