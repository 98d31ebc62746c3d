-- The ledger of our own schema. Read and written under an advisory lock that is tried, never waited for.

-- name: try_migration_lock
-- Held until the end of this transaction. Waiters try again in transactions of their own: one that waited inside
-- would hang against CREATE INDEX CONCURRENTLY.
SELECT pg_try_advisory_xact_lock(CAST(:lock AS bigint));

-- name: ledger_exists
SELECT to_regclass(CAST(:ledger AS text)) IS NOT NULL;

-- name: make_ledger
CREATE TABLE IF NOT EXISTS fencerow.schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    compatible_from integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    applied_by text
);

-- name: read_ledger
SELECT version, name, checksum, compatible_from FROM fencerow.schema_migrations ORDER BY version;

-- name: note_migration
INSERT INTO fencerow.schema_migrations (version, name, checksum, compatible_from, applied_by)
VALUES (CAST(:version AS integer), :name, :checksum, CAST(:compatible_from AS integer), CAST(:actor AS text));
