-- The ends of jobs as events, for groups that want to know of them.

-- at: when jobs have ended
-- The end of a job that was subscribed to is an event, with its result or its error.
INSERT INTO fencerow.events (topic, key, bucket, data, bytes, published_at)
SELECT 'job.' || ended.state, ended.id,
       (instr('0123456789abcdef', substr(ended.id, -3, 1)) - 1) * 256
       + (instr('0123456789abcdef', substr(ended.id, -2, 1)) - 1) * 16 + instr('0123456789abcdef', substr(ended.id, -1)) - 1,
       json_object('job', ended.id, 'name', ended.name, 'queue', ended.queue, 'attempt', ended.attempt, 'key', ended.key,
                   ended.what, CASE ended.what WHEN 'outside' THEN json('true')
                                               WHEN 'result' THEN json(ended.result)
                                               ELSE json(ended.error) END),
       COALESCE(length(CASE ended.what WHEN 'error' THEN ended.error ELSE ended.result END), 0) + 200, ended.ended_at
FROM (SELECT told.*, CASE WHEN told.state <> 'succeeded' THEN 'error'
                          WHEN substr(told.result, 1, 19) = '{"fencerow:outside"' THEN 'outside'
                          ELSE 'result' END AS what
      FROM fencerow.ended AS told
      WHERE told.subscribed = 1) AS ended;
