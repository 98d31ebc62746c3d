-- Which attempt of a job holds the lease of a row in a user's table; written beside the claim of that row.

-- name: purge_row_leases
-- Forget lines about leases that ended long ago.
DELETE FROM fencerow.row_leases
WHERE (target, sub, row_id) IN (SELECT old.target, old.sub, old.row_id
                                FROM fencerow.row_leases AS old
                                WHERE old.until <= fencerow.now()
                                ORDER BY old.until
                                LIMIT :limit)
RETURNING row_id;
