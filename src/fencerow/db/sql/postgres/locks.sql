-- Locks that end with the transaction. Never one of the session: behind a pooler that locks nothing.

-- name: take_lock
-- Wait until nobody else holds this number. A statement of its own: what is read after it is newer than the lock.
SELECT pg_advisory_xact_lock(CAST(:lock AS bigint));

-- name: try_lock
-- The same without waiting: whether it is held now.
SELECT pg_try_advisory_xact_lock(CAST(:lock AS bigint));
