-- The ledger of our own schema. Read and written under an advisory lock that is tried, never waited for.

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

-- name: relation_exists
-- Whether there is a table or index of that name.
SELECT to_regclass(CAST(:name AS text)) IS NOT NULL;

-- name: make_work
-- Which migration is under way, and how many of its parts are committed: one row. Who builds indexes for it outside of a
-- transaction holds the row under a lease; the attempt is the fence.
CREATE TABLE IF NOT EXISTS fencerow.schema_work (
    one integer PRIMARY KEY CHECK (one = 1),
    version integer NOT NULL,
    checksum text NOT NULL,
    parts integer NOT NULL,
    attempt bigint NOT NULL DEFAULT 0,
    holder text,
    until timestamptz
);

-- name: read_work
-- The migration that is under way or was the last, how many of its parts are committed, and whether somebody builds
-- indexes for it now.
SELECT version, checksum, parts, until IS NOT NULL AND until > clock_timestamp() FROM fencerow.schema_work;

-- name: note_part
-- Note a part in the transaction that ran it: both or neither. Under the migrators' lock, so nobody else can be here.
INSERT INTO fencerow.schema_work (one, version, checksum, parts)
VALUES (1, CAST(:version AS integer), :checksum, CAST(:parts AS integer))
ON CONFLICT (one) DO UPDATE
SET version = excluded.version, checksum = excluded.checksum, parts = excluded.parts;
