-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: handovers_used
-- A row, if there are ends on their way to a receiver; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.handovers);
