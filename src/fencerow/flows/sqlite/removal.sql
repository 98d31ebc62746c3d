-- Flows that ended long ago are removed. Their rows are locked first, so that whoever runs one again comes before or finds none.

-- name: lock_old_flows
-- Flows that ended so long ago, and of which no job was revived since, the oldest first; the write lock is held already.
SELECT flow.id
FROM fencerow.flows AS flow
WHERE flow.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
  AND NOT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.flow_id = flow.id AND member.state IS NULL)
ORDER BY flow.ended_at, flow.id
LIMIT :limit;

-- name: forget_flow_callbacks
-- Of flows that are locked for removal.
DELETE FROM fencerow.flow_callbacks WHERE flow_id IN (SELECT value FROM json_each(:flows));

-- name: forget_flow_waits
-- Of flows that are locked for removal.
DELETE FROM fencerow.flow_waits WHERE flow_id IN (SELECT value FROM json_each(:flows));

-- name: forget_flow_edges
-- Of flows that are locked for removal.
DELETE FROM fencerow.flow_edges WHERE flow_id IN (SELECT value FROM json_each(:flows));

-- name: forget_flow_jobs
-- Of flows that are locked for removal. The jobs themselves stay.
DELETE FROM fencerow.flow_jobs WHERE flow_id IN (SELECT value FROM json_each(:flows));

-- name: forget_flows
-- Guard: locked, and ended.
DELETE FROM fencerow.flows WHERE id IN (SELECT value FROM json_each(:flows)) AND ended_at IS NOT NULL;
