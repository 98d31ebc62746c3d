-- compatible_from: 1
-- What the first versions let in, or could not survive. Nothing of it concerns a file: SQLite has no roles, stores no
-- number that is none, and cannot add a constraint to a table that is there; what is read is survived (store/decoding.py).

-- === Guards: which run of its owner has a key or a source ====================================================

-- A later attempt of the same owner takes over what an earlier one has left; the same attempt does not. NULL: the
-- owner numbers no attempts, and nobody takes over before the lease ends.
ALTER TABLE fencerow.once_keys ADD COLUMN attempt INTEGER;
ALTER TABLE fencerow.sources ADD COLUMN attempt INTEGER;
