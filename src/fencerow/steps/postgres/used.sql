-- Whether any job waits for a time: until one does, no worker loads what wakes them.

-- name: steps_used
-- A row, if a job waits for a time; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.job_waits AS wait WHERE wait.look_at IS NOT NULL);
