-- Queues: only those about which somebody said something have a row.

-- name: pause_queue
-- Stop claims from a queue until somebody resumes it; it survives restarts. Pausing again keeps the first word.
INSERT INTO fencerow.queues AS known (name, paused_at, paused_by, reason)
SELECT :queue, fencerow.now(), CAST(:actor AS text), CAST(:reason AS text)
ON CONFLICT (name) DO UPDATE
SET paused_at = EXCLUDED.paused_at, paused_by = EXCLUDED.paused_by, reason = EXCLUDED.reason
WHERE known.paused_at IS NULL
RETURNING name;

-- name: resume_queue
-- Let claims from a queue go on. Guard: paused.
UPDATE fencerow.queues AS known
SET paused_at = NULL, paused_by = NULL, reason = NULL
WHERE known.name = :queue AND known.paused_at IS NOT NULL
RETURNING known.name;

-- name: paused_queues
-- The paused queues: when, by whom, why.
SELECT known.name, fencerow.us(known.paused_at), known.paused_by, known.reason
FROM fencerow.queues AS known
WHERE known.paused_at IS NOT NULL
ORDER BY known.name;

-- name: paused_queue
-- The pause of one queue; no row where it is open.
SELECT known.name, fencerow.us(known.paused_at), known.paused_by, known.reason
FROM fencerow.queues AS known
WHERE known.name = :queue AND known.paused_at IS NOT NULL;
