-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: flows_used
-- A row, if there are flows; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.flows);
