-- Maintenance of the gateways: begun, looked at, ended.

-- name: begin_maintenance
-- Let gateways take no requests. Guard: no row stands there, so beginning again keeps the first word.
INSERT INTO fencerow.gateway_maintenance (id, since, set_by, reason, retry_after_s)
VALUES (1, fencerow.now(), :actor, :reason, :retry_after_s)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: end_maintenance
-- Let gateways take requests again. Guard: the row stands there.
DELETE FROM fencerow.gateway_maintenance WHERE id = 1 RETURNING id;

-- name: read_maintenance
-- Since when, by whom and why gateways take no requests; no row while they do.
SELECT known.since, known.set_by, known.reason, known.retry_after_s, fencerow.now()
FROM fencerow.gateway_maintenance AS known;
