-- What of webhooks may go: what arrived long ago, and all of endpoints that were removed.

-- name: purge_delivered
-- Forget deliveries that arrived so long ago, with their attempts. Guard: they arrived; what has not is kept.
DELETE FROM fencerow.webhook_attempts
WHERE (endpoint_id, event_id) IN (
        SELECT arrived.endpoint_id, arrived.event_id
        FROM fencerow.webhook_deliveries AS arrived
        WHERE arrived.delivered_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
        ORDER BY arrived.delivered_at, arrived.endpoint_id, arrived.event_id
        LIMIT :limit
    );
DELETE FROM fencerow.webhook_deliveries
WHERE (endpoint_id, event_id) IN (
        SELECT arrived.endpoint_id, arrived.event_id
        FROM fencerow.webhook_deliveries AS arrived
        WHERE arrived.delivered_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
        ORDER BY arrived.delivered_at, arrived.endpoint_id, arrived.event_id
        LIMIT :limit
    )
RETURNING event_id;

-- name: purge_removed
-- Forget deliveries of endpoints that were removed, with their attempts. Guard: removed.
DELETE FROM fencerow.webhook_attempts
WHERE (endpoint_id, event_id) IN (
        SELECT owned.endpoint_id, owned.event_id
        FROM fencerow.webhook_endpoints AS endpoint
        JOIN fencerow.webhook_deliveries AS owned ON owned.endpoint_id = endpoint.id
        WHERE endpoint.state = 'removed'
        ORDER BY owned.endpoint_id, owned.event_id
        LIMIT :limit
    );
DELETE FROM fencerow.webhook_deliveries
WHERE (endpoint_id, event_id) IN (
        SELECT owned.endpoint_id, owned.event_id
        FROM fencerow.webhook_endpoints AS endpoint
        JOIN fencerow.webhook_deliveries AS owned ON owned.endpoint_id = endpoint.id
        WHERE endpoint.state = 'removed'
        ORDER BY owned.endpoint_id, owned.event_id
        LIMIT :limit
    )
RETURNING event_id;

-- name: forget_removed
-- Forget endpoints that were removed, an hour later: until then who had read them may still write a delivery.
-- Guard: removed so long ago, and nothing is left of what it was told.
DELETE FROM fencerow.webhook_endpoints AS endpoint
WHERE endpoint.state = 'removed'
  AND endpoint.changed_at < fencerow.now() - 3600000000
  AND NOT EXISTS (SELECT 1 FROM fencerow.webhook_deliveries AS delivery WHERE delivery.endpoint_id = endpoint.id)
RETURNING name;

-- name: troubled_endpoints
-- Of each endpoint: how many of its deliveries have failed and how many wait (up to so many are looked at), and since
-- when the first of these waits.
SELECT endpoint.name, endpoint.state, endpoint.reason, endpoint.failures, endpoint.open_until,
       count(open.event_id) FILTER (WHERE NOT open.live), count(open.event_id) FILTER (WHERE open.live),
       min(open.created_at) FILTER (WHERE open.live), fencerow.now()
FROM fencerow.webhook_endpoints AS endpoint
LEFT JOIN (
    SELECT delivery.endpoint_id, delivery.event_id, delivery.created_at,
           EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id) AS live
    FROM fencerow.webhook_deliveries AS delivery
    WHERE delivery.delivered_at IS NULL
    ORDER BY delivery.endpoint_id, delivery.event_id
    LIMIT :look
) AS open ON open.endpoint_id = endpoint.id
WHERE endpoint.state <> 'removed'
GROUP BY endpoint.id
ORDER BY endpoint.name;
