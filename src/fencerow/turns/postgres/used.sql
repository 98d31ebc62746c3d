-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: turns_used
-- A row, if a gate is known, or a job waits at one that nobody has looked at; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.gates)
   OR EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.state = 'waiting' AND job.gate IS NOT NULL);
