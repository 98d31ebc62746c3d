-- What of webhooks may go: what arrived long ago, and all of endpoints that were removed. Rows are found by their places: joined
-- by its key with what was found, the planner compares each delivery with each when it believes that there are few. COALESCE() is no condition of an index, so that none is
-- walked for these places.

-- fragment: attempts of the old
-- The attempts at each delivery are looked for by its key (OFFSET 0 keeps the planner from joining the tables as it likes).
tried AS (
    DELETE FROM fencerow.webhook_attempts AS attempt
    WHERE attempt.ctid = ANY(ARRAY(
            SELECT made.place
            FROM old
            CROSS JOIN LATERAL (SELECT attempt.ctid AS place
                                FROM fencerow.webhook_attempts AS attempt
                                WHERE attempt.endpoint_id = old.endpoint_id AND attempt.event_id = old.event_id
                                OFFSET 0) AS made
        ))
)

-- name: purge_delivered
-- Forget deliveries that arrived so long ago, with their attempts. Guard: they arrived; what has not is kept.
WITH old AS (
    DELETE FROM fencerow.webhook_deliveries AS delivery
    WHERE delivery.ctid = ANY(ARRAY(
            SELECT arrived.ctid
            FROM fencerow.webhook_deliveries AS arrived
            WHERE arrived.delivered_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
            ORDER BY arrived.delivered_at
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
      AND COALESCE(delivery.delivered_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision)), false)
    RETURNING delivery.endpoint_id, delivery.event_id
),
{{attempts of the old}}
SELECT old.event_id FROM old;

-- name: purge_removed
-- Forget deliveries of endpoints that were removed, with their attempts. Guard: removed.
WITH old AS (
    DELETE FROM fencerow.webhook_deliveries AS delivery
    WHERE delivery.ctid = ANY(ARRAY(
            SELECT owned.ctid
            FROM fencerow.webhook_endpoints AS endpoint
            JOIN fencerow.webhook_deliveries AS owned ON owned.endpoint_id = endpoint.id
            WHERE endpoint.state = 'removed'
            LIMIT CAST(:limit AS integer)
            FOR UPDATE OF owned SKIP LOCKED
        ))
    RETURNING delivery.endpoint_id, delivery.event_id
),
{{attempts of the old}}
SELECT old.event_id FROM old;

-- name: forget_removed
-- Forget endpoints that were removed, an hour later: until then who had read them may still write a delivery.
-- Guard: removed so long ago, and nothing is left of what it was told.
DELETE FROM fencerow.webhook_endpoints AS endpoint
WHERE endpoint.state = 'removed'
  AND endpoint.changed_at < (SELECT fencerow.now()) - fencerow.seconds(3600)
  AND NOT EXISTS (SELECT 1 FROM fencerow.webhook_deliveries AS delivery WHERE delivery.endpoint_id = endpoint.id)
RETURNING endpoint.name;

-- name: troubled_endpoints
-- Of each endpoint: how many of its deliveries have failed and how many wait (up to so many are looked at), and since
-- when the first of these waits.
SELECT endpoint.name, endpoint.state, endpoint.reason, endpoint.failures, fencerow.us(endpoint.open_until),
       count(open.event_id) FILTER (WHERE NOT open.live), count(open.event_id) FILTER (WHERE open.live),
       fencerow.us(min(open.created_at) FILTER (WHERE open.live)), fencerow.us((SELECT fencerow.now()))
FROM fencerow.webhook_endpoints AS endpoint
LEFT JOIN LATERAL (
    SELECT delivery.event_id, delivery.created_at,
           EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id) AS live
    FROM fencerow.webhook_deliveries AS delivery
    WHERE delivery.endpoint_id = endpoint.id AND delivery.delivered_at IS NULL
    ORDER BY delivery.event_id
    LIMIT CAST(:look AS integer)
) AS open ON true
WHERE endpoint.state <> 'removed'
GROUP BY endpoint.id
ORDER BY endpoint.name;
