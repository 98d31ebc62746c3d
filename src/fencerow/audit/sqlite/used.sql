-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: audit_used
-- A row, if there are changes that people made; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.audit);
