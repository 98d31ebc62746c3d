-- Maintenance of the gateways: begun, looked at, ended.

-- name: begin_maintenance
-- Let gateways take no requests. Guard: no row stands there, so beginning again keeps the first word.
INSERT INTO fencerow.gateway_maintenance (id, since, set_by, reason, retry_after_s)
SELECT 1, fencerow.now(), CAST(:actor AS text), CAST(:reason AS text), CAST(:retry_after_s AS integer)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: end_maintenance
-- Let gateways take requests again. Guard: the row stands there.
DELETE FROM fencerow.gateway_maintenance AS known WHERE known.id = 1 RETURNING known.id;

-- name: read_maintenance
-- Since when, by whom and why gateways take no requests; no row while they do.
SELECT fencerow.us(known.since), known.set_by, known.reason, known.retry_after_s, fencerow.us(fencerow.now())
FROM fencerow.gateway_maintenance AS known;
