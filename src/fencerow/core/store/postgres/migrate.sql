-- The ledger of our own schema. Read and written under an advisory lock that is tried, never waited for.

-- name: try_migration_lock
-- Held until the end of this transaction. Waiters try again in transactions of their own: one that waited inside
-- would hang against CREATE INDEX CONCURRENTLY.
SELECT pg_try_advisory_xact_lock(CAST(:lock AS bigint));

-- name: ledger_exists
-- Whether any migration was ever applied here.
SELECT to_regclass(CAST(:ledger AS text)) IS NOT NULL;

-- name: schema_exists
-- Looked up first: CREATE SCHEMA IF NOT EXISTS is refused to an owner who may not create further ones.
SELECT to_regnamespace(split_part(CAST(:ledger AS text), '.', 1)) IS NOT NULL;

-- name: make_schema
-- Make the schema itself, for a role that may; where an operator made it, it is there already.
CREATE SCHEMA fencerow.own_schema;

-- name: make_ledger
-- The ledger itself is no migration: it comes before the first.
CREATE TABLE IF NOT EXISTS fencerow.schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    compatible_from integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    applied_by text
);

-- name: read_ledger
-- The migrations that were applied, in order, each with the checksum of its text.
SELECT version, name, checksum, compatible_from FROM fencerow.schema_migrations ORDER BY version;

-- name: note_migration
-- Note a migration in the transaction that applied it: both or neither.
INSERT INTO fencerow.schema_migrations (version, name, checksum, compatible_from, applied_by)
VALUES (CAST(:version AS integer), :name, :checksum, CAST(:compatible_from AS integer), CAST(:actor AS text));
