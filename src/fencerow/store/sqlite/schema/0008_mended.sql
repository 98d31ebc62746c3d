-- compatible_from: 1
-- What the first versions let in, or could not survive. Nothing of it concerns a file: SQLite has no roles, stores no
-- number that is none, and cannot add a constraint to a table that is there; what is read is survived (store/decoding.py).
SELECT 1;
