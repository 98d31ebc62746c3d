-- The ledger of our own schema. Read and written under the file's one write lock.

-- name: schema_exists
-- The file is there: it was opened.
SELECT :ledger IS NOT NULL;

-- name: make_schema
-- A file needs no schema.
SELECT 1;

-- name: make_ledger
-- The ledger itself is no migration: it comes before the first.
CREATE TABLE IF NOT EXISTS fencerow.schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    compatible_from INTEGER NOT NULL,
    applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    applied_by TEXT
);

-- name: read_ledger
-- The migrations that were applied, in order, each with the checksum of its text.
SELECT version, name, checksum, compatible_from FROM fencerow.schema_migrations ORDER BY version;

-- name: note_migration
-- Note a migration in the transaction that applied it: both or neither.
INSERT INTO fencerow.schema_migrations (version, name, checksum, compatible_from, applied_by)
VALUES (:version, :name, :checksum, :compatible_from, :actor);

-- name: relation_exists
-- Whether there is a table or index of that name.
SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = :name);

-- name: make_work
-- Which migration is under way, and how many of its parts are committed: one row. Who builds indexes for it outside of a
-- transaction holds the row under a lease; the attempt is the fence.
CREATE TABLE IF NOT EXISTS fencerow.schema_work (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    parts INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    holder TEXT,
    until INTEGER
);

-- name: read_work
-- The migration that is under way or was the last, how many of its parts are committed, and whether somebody builds
-- indexes for it now.
SELECT version, checksum, parts, 0 FROM fencerow.schema_work;

-- name: note_part
-- Note a part in the transaction that ran it: both or neither. Under the migrators' lock, so nobody else can be here.
INSERT INTO fencerow.schema_work (one, version, checksum, parts)
VALUES (1, :version, :checksum, :parts)
ON CONFLICT (one) DO UPDATE
SET version = excluded.version, checksum = excluded.checksum, parts = excluded.parts;
