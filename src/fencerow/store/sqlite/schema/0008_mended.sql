-- compatible_from: 1

-- === Guards: which run of its owner has a key or a source ====================================================

-- A later attempt of the same owner takes over what an earlier one has left; the same attempt does not. NULL: the
-- owner numbers no attempts, and nobody takes over before the lease ends.
ALTER TABLE fencerow.once_keys ADD COLUMN attempt INTEGER;
ALTER TABLE fencerow.sources ADD COLUMN attempt INTEGER;
