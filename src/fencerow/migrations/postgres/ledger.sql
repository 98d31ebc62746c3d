-- The ledger of a user's database. Read and written under an advisory lock that is tried, never waited for.

-- name: be_impatient
-- For this transaction: a lock on a table is waited for so long, while others wait behind us, and asked for again later.
SELECT set_config('lock_timeout', CAST(:lock_wait_ms AS text), true);

-- name: try_ledger_lock
-- Held until the end of this transaction. Waiters try again in transactions of their own: one that waited inside
-- would hang against CREATE INDEX CONCURRENTLY.
SELECT pg_try_advisory_xact_lock(CAST(:lock AS bigint));

-- name: ledger_columns
-- The columns of the ledger; none when there is no ledger.
SELECT att.attname FROM pg_attribute AS att
WHERE att.attrelid = to_regclass(CAST(:ledger AS text)) AND att.attnum > 0 AND NOT att.attisdropped
ORDER BY att.attnum;

-- name: strangers
-- Some tables that lie where the ledger would be, if anybody made any. What an extension brought does not count.
SELECT rel.relname FROM pg_class AS rel
WHERE rel.relnamespace = to_regnamespace(coalesce(CAST(:place AS text), quote_ident(current_schema())))
  AND rel.relkind IN ('r', 'p')
  AND NOT EXISTS (
      SELECT 1 FROM pg_depend AS dep
      WHERE dep.classid = CAST('pg_class' AS regclass) AND dep.objid = rel.oid AND dep.deptype = 'e'
  )
ORDER BY rel.relname
LIMIT 3;

-- name: make_ledger
-- The ledger itself is no migration: it comes before the first.
CREATE TABLE fencerow.ledger (
    version bigint PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    state text NOT NULL CHECK (state IN ('applied', 'started', 'reverting')),
    holder text,
    attempt integer NOT NULL DEFAULT 1,
    lease_until timestamptz,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    noted_by text
);

-- name: read_ledger
-- Every migration that ran or began to, in order; the last column is what is left of a lease.
SELECT version, name, checksum, state, attempt,
    CAST(extract(epoch FROM lease_until - clock_timestamp()) AS double precision)
FROM fencerow.ledger
ORDER BY version;

-- name: this_transaction
-- Its number, by which we see that a migration has not ended it.
SELECT CAST(pg_current_xact_id() AS text);

-- name: forget_settings
-- What a migration has set for its session ends with it: else the next migration, and the ledger's own line, would go where it said.
-- The role is not among what RESET ALL resets.
RESET SESSION AUTHORIZATION;
RESET ROLE;
RESET ALL;

-- name: note_migrated
-- Note a migration in the transaction that ran it: both or neither.
INSERT INTO fencerow.ledger (version, name, checksum, state, noted_by)
VALUES (CAST(:version AS bigint), :name, :checksum, 'applied', CAST(:actor AS text));

-- name: forget_migrated
-- Forget a migration in the transaction that took it back. Guard: it is whole, or begun by somebody whose lease has passed.
DELETE FROM fencerow.ledger
WHERE version = CAST(:version AS bigint) AND (state = 'applied' OR lease_until <= clock_timestamp())
RETURNING version;

-- name: take_apart
-- Begin, or take over, a migration that runs outside of a transaction; the attempt is the fence of whoever runs it.
-- Guard: it is not begun, or whole where it shall be taken back, or its holder's lease has passed.
INSERT INTO fencerow.ledger AS known (version, name, checksum, state, holder, lease_until, noted_by)
VALUES (
    CAST(:version AS bigint), :name, :checksum, :doing, :holder,
    clock_timestamp() + CAST(:lease_s AS double precision) * INTERVAL '1 second', CAST(:actor AS text)
)
ON CONFLICT (version) DO UPDATE
SET name = excluded.name,
    checksum = excluded.checksum,
    state = excluded.state,
    holder = excluded.holder,
    attempt = known.attempt + 1,
    lease_until = excluded.lease_until,
    noted_at = clock_timestamp(),
    noted_by = excluded.noted_by
WHERE (known.state = 'applied' AND excluded.state = 'reverting')
   OR (known.state <> 'applied' AND known.lease_until <= clock_timestamp())
RETURNING attempt;

-- name: renew_apart
-- Move the lease of a migration on. Guard: it is still this holder's, in this attempt.
UPDATE fencerow.ledger
SET lease_until = clock_timestamp() + CAST(:lease_s AS double precision) * INTERVAL '1 second'
WHERE version = CAST(:version AS bigint)
  AND state <> 'applied'
  AND holder = :holder
  AND attempt = CAST(:attempt AS integer)
RETURNING attempt;

-- name: finish_apart
-- Note that a migration outside of a transaction is whole. Guard: still this holder's, in this attempt.
UPDATE fencerow.ledger
SET state = 'applied', holder = NULL, lease_until = NULL, noted_at = clock_timestamp()
WHERE version = CAST(:version AS bigint)
  AND state = 'started'
  AND holder = :holder
  AND attempt = CAST(:attempt AS integer)
RETURNING version;

-- name: finish_revert
-- Forget a migration that was taken back outside of a transaction. Guard: still this holder's, in this attempt.
DELETE FROM fencerow.ledger
WHERE version = CAST(:version AS bigint)
  AND state = 'reverting'
  AND holder = :holder
  AND attempt = CAST(:attempt AS integer)
RETURNING version;

-- name: statements_under_way
-- Whether a statement of that mark still runs, or a transaction of the session in which its function ran is open: the
-- client may be dead and its lease past, yet the server goes on.
SELECT EXISTS (
    SELECT 1 FROM pg_stat_activity AS act
    WHERE act.datname = current_database()
      AND act.pid <> pg_backend_pid()
      AND (act.state = 'active' AND starts_with(act.query, CAST(:mark AS text))
           OR act.state <> 'idle' AND act.application_name = CAST(:session AS text))
);

-- name: find_index
-- An index of that name on that table, whether it is valid (one that a crash left behind is not), and what it is.
SELECT quote_ident(space.nspname) || '.' || quote_ident(rel.relname), idx.indisvalid,
    CASE WHEN idx.indisunique THEN 'UNIQUE ' ELSE '' END
        || substring(pg_get_indexdef(idx.indexrelid) FROM ' (USING .*)$')
FROM pg_index AS idx
JOIN pg_class AS rel ON rel.oid = idx.indexrelid
JOIN pg_namespace AS space ON space.oid = rel.relnamespace
WHERE idx.indrelid = to_regclass(CAST(:tab AS text)) AND rel.relname = CAST(:name AS text);

-- name: relation_exists
-- Whether there is a table or index of that name.
SELECT to_regclass(CAST(:name AS text)) IS NOT NULL;
