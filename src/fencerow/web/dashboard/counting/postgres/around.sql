-- What belongs to a job in the log of events.

-- name: events_around
-- Of the newest :look events those that tell the end of a job, or that carry its trace or correlation id; the newest first.
SELECT event.id, event.topic, event.key, fencerow.us(event.published_at)
FROM (SELECT log.id, log.topic, log.key, log.headers, log.published_at
      FROM fencerow.events AS log
      ORDER BY log.id DESC
      LIMIT CAST(:look AS integer)) AS event
WHERE event.key = CAST(:job AS text) AND event.topic IN ('job.succeeded', 'job.failed', 'job.cancelled')
   OR event.headers ->> 'correlation-id' = CAST(:correlation AS text)
   OR substr(event.headers ->> 'traceparent', 4, 32) = CAST(:trace AS text)
ORDER BY event.id DESC
LIMIT CAST(:limit AS integer);
