-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: guards_used
-- A row, if there is any of what the guards keep: keys, windows, sources, leases of rows, mutexes; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.once_keys)
   OR EXISTS (SELECT 1 FROM fencerow.dedupe_windows)
   OR EXISTS (SELECT 1 FROM fencerow.sources)
   OR EXISTS (SELECT 1 FROM fencerow.row_leases)
   OR EXISTS (SELECT 1 FROM fencerow.mutexes);
