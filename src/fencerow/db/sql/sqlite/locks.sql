-- A writing transaction holds the file's one write lock from its first statement on, so each of these has it already.

-- name: take_lock
-- Nothing is left to wait for.
SELECT :lock;

-- name: try_lock
-- It is held.
SELECT 1 + 0 * :lock;
