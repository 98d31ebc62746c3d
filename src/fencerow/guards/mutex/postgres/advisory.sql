-- Locks by number in a transaction of the user's own; they end with it.

-- name: advisory_lock
-- Wait until nobody else holds this number, and hold it until the transaction ends.
SELECT pg_advisory_xact_lock(CAST(:lock AS bigint));

-- name: try_advisory_lock
-- The same without waiting: whether it is held now.
SELECT pg_try_advisory_xact_lock(CAST(:lock AS bigint));
