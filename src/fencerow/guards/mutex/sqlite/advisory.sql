-- Locks by number in a transaction of the user's own. A file has one write lock, which stands for all of them.

-- name: advisory_lock
-- Take the write lock by a statement that changes nothing: a transaction that has only read does not have it.
DELETE FROM fencerow.mutexes WHERE key = 0 * :lock AND false;

-- name: try_advisory_lock
-- The same, and say so.
DELETE FROM fencerow.mutexes WHERE key = 0 * :lock AND false;
SELECT 1;
