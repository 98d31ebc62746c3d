-- Publishing: a row in the publisher's own transaction. Its id is its place in the log, because nobody else can
-- write before that transaction has ended.

-- name: append_events
-- Write events, in their order.
INSERT INTO fencerow.events (topic, key, bucket, data, headers, bytes, published_at)
SELECT json_extract(event.value, '$.topic'), json_extract(event.value, '$.key'), json_extract(event.value, '$.bucket'),
       json_extract(event.value, '$.data'), json_extract(event.value, '$.headers'),
       json_extract(event.value, '$.bytes'), fencerow.now()
FROM json_each(:events) AS event
ORDER BY event.key
RETURNING id;
