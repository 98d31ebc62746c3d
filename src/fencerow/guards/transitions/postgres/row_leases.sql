-- Which attempt of a job holds the lease of a row in a user's table; written beside the claim of that row.

-- name: purge_row_leases
-- Forget lines about leases that ended long ago.
-- Guard: the time again, for those that were written anew meanwhile.
DELETE FROM fencerow.row_leases AS known
USING (SELECT old.target, old.sub, old.row_id
       FROM fencerow.row_leases AS old
       WHERE old.until <= (SELECT fencerow.now())
       ORDER BY old.until
       LIMIT :limit
       FOR UPDATE SKIP LOCKED) AS gone
WHERE known.target = gone.target
  AND known.sub = gone.sub
  AND known.row_id = gone.row_id
  AND known.until <= (SELECT fencerow.now())
RETURNING known.row_id;
