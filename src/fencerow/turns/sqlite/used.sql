-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: turns_used
-- A row, if a gate is known; else none.
SELECT 1 WHERE EXISTS (SELECT 1 FROM fencerow.gates);
