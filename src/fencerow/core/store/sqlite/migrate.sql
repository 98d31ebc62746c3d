-- The ledger of our own schema. Read and written under the file's one write lock.

-- name: try_migration_lock
-- The transaction was begun with the write lock: nobody else can be here.
SELECT :lock IS NOT NULL;

-- name: ledger_exists
-- Whether any migration was ever applied here.
SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :ledger);

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
