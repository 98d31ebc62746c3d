-- What belongs to a job in the log of events.

-- name: events_around
-- Of the newest :look events those that tell the end of a job, or that carry its trace or correlation id; the newest first.
SELECT event.id, event.topic, event.key, event.published_at
FROM (SELECT log.id, log.topic, log.key, log.headers, log.published_at
      FROM fencerow.events AS log
      ORDER BY log.id DESC
      LIMIT :look) AS event
WHERE event.key = :job AND event.topic IN ('job.succeeded', 'job.failed', 'job.cancelled')
   OR iif(json_valid(event.headers), event.headers, '{}') ->> 'correlation-id' = :correlation
   OR substr(iif(json_valid(event.headers), event.headers, '{}') ->> 'traceparent', 4, 32) = :trace
ORDER BY event.id DESC
LIMIT :limit;
