-- Publishing: a row in the publisher's own transaction. It has no place in the log until it is known to be committed.

-- name: append_events
-- Write events, in their order. The transaction's number is taken before any id is: whoever sees an id missing can
-- tell by the number when nobody can have it any more, see sequence_events.
WITH mine AS MATERIALIZED (SELECT pg_current_xact_id() AS xid),
clock AS MATERIALIZED (SELECT fencerow.now() AS now)
INSERT INTO fencerow.events (topic, key, bucket, data, headers, bytes, published_at)
SELECT event.topic, event.key, event.bucket, CAST(event.data AS json), CAST(event.headers AS json), event.bytes,
       clock.now
FROM mine CROSS JOIN clock CROSS JOIN ROWS FROM (
    json_to_recordset(CAST(:events AS json))
    AS (topic text, key text, bucket smallint, data text, headers text, bytes integer)
) WITH ORDINALITY AS event (topic, key, bucket, data, headers, bytes, number)
ORDER BY event.number
RETURNING id;
