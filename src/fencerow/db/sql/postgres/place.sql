-- Which database this is.

-- name: database_here
-- The name of this database, what tells it from every other one that runs now, and whether it is a standby. Any role
-- may ask. The start of the server stands for the server: its own number is refused by some providers, and a refusal
-- would fail the transaction in which it is asked.
SELECT CAST(current_database() AS text),
    concat(extract(epoch FROM pg_postmaster_start_time()), '/', here.oid),
    CAST(pg_is_in_recovery() AS int)
FROM pg_catalog.pg_database AS here
WHERE here.datname = current_database();
