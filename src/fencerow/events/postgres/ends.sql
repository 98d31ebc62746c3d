-- The ends of jobs as events, for groups that want to know of them.

-- at: when jobs have ended
-- The end of a job that was subscribed to is an event, with its result or its error.
published AS (
    INSERT INTO fencerow.events (topic, key, bucket, data, bytes, published_at)
    SELECT 'job.' || ended.state, CAST(ended.id AS text),
           CAST(CAST('x' || right(CAST(ended.id AS text), 3) AS bit(12)) AS integer),
           json_build_object('job', ended.id, 'name', ended.name, 'queue', ended.queue, 'attempt', ended.attempt,
                             'key', ended.key, what.it, CASE what.it WHEN 'outside' THEN CAST('true' AS json)
                                                                     WHEN 'result' THEN ended.result
                                                                     ELSE ended.error END),
           COALESCE(length(CAST(CASE what.it WHEN 'error' THEN ended.error ELSE ended.result END AS text)), 0) + 200,
           ended.ended_at
    FROM ended
    CROSS JOIN LATERAL (
        SELECT CASE WHEN ended.state <> 'succeeded' THEN 'error'
                    WHEN left(CAST(ended.result AS text), 19) = '{"fencerow:outside"' THEN 'outside'
                    ELSE 'result' END AS it
    ) AS what
    WHERE ended.subscribed
)
