-- Which attempt of a job holds the lease of a row in a user's table; written beside the claim of that row.

-- name: purge_row_leases
-- Forget lines about leases that ended long ago.
-- Guard: the time again, for those that were written anew meanwhile.
DELETE FROM fencerow.row_leases AS known
WHERE known.ctid = ANY(ARRAY(
       SELECT old.ctid
       FROM fencerow.row_leases AS old
       WHERE old.until <= (SELECT fencerow.now())
       ORDER BY old.until
       LIMIT :limit
       FOR UPDATE SKIP LOCKED))
  AND known.until <= (SELECT fencerow.now())
RETURNING known.row_id;
