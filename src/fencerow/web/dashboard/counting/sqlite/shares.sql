-- Shares, a page at a time.

-- name: shares_page
-- As `read_shares`, of those behind a queue and share, at most :limit.
SELECT every.queue, every.share, COALESCE(max(every.weight), 1), sum(every.queued), sum(every.running), min(every.first),
       max(every.set_at), max(every.set_by), fencerow.now()
FROM (SELECT job.queue, job.share, NULL AS weight, count(*) FILTER (WHERE job.state = 'queued') AS queued,
             count(*) FILTER (WHERE job.state = 'running') AS running,
             min(job.run_at) FILTER (WHERE job.state = 'queued') AS first, NULL AS set_at, NULL AS set_by
      FROM fencerow.jobs AS job
      WHERE job.share IS NOT NULL AND job.state IN ('queued', 'running') AND (job.queue, job.share) > (:queue, :share)
      GROUP BY job.queue, job.share
      UNION ALL
      SELECT known.queue, known.share, known.weight, 0, 0, NULL, known.set_at, known.set_by
      FROM fencerow.shares AS known
      WHERE (known.queue, known.share) > (:queue, :share)) AS every
GROUP BY every.queue, every.share
ORDER BY every.queue, every.share
LIMIT :limit;
