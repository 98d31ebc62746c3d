-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: relay_used
-- A row, if any relay was ever run; else none.
SELECT 1 WHERE EXISTS (SELECT 1 FROM fencerow.relays);
