-- Which database this is.

-- name: database_here
-- A file is known by its path.
SELECT 'main', '', 0;
