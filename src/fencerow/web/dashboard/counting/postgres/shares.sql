-- Shares, a page at a time.

-- name: shares_page
-- As `read_shares`, of those behind a queue and share, at most :limit.
SELECT COALESCE(seen.queue, known.queue), COALESCE(seen.share, known.share), COALESCE(known.weight, 1),
       COALESCE(seen.queued, 0), COALESCE(seen.running, 0), fencerow.us(seen.first), fencerow.us(known.set_at), known.set_by,
       fencerow.us((SELECT fencerow.now()))
FROM (SELECT job.queue, job.share, count(*) FILTER (WHERE job.state = 'queued') AS queued,
             count(*) FILTER (WHERE job.state = 'running') AS running,
             min(job.run_at) FILTER (WHERE job.state = 'queued') AS first
      FROM fencerow.jobs AS job
      WHERE job.share IS NOT NULL AND job.state IN ('queued', 'running')
        AND (job.queue, job.share) > (CAST(:queue AS text), CAST(:share AS text))
      GROUP BY job.queue, job.share) AS seen
FULL JOIN (SELECT *
           FROM fencerow.shares AS given
           WHERE (given.queue, given.share) > (CAST(:queue AS text), CAST(:share AS text))) AS known
       ON known.queue = seen.queue AND known.share = seen.share
ORDER BY 1, 2
LIMIT CAST(:limit AS integer);
