-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: limits_used
-- A row, if there are limits or something is remembered of keys; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.limits)
   OR EXISTS (SELECT 1 FROM fencerow.limit_states);
