-- The ledger of a user's file. Read and written under the file's one write lock.

-- name: be_impatient
-- Nothing is left to wait for once the write lock is held.
SELECT :lock_wait_ms;

-- name: try_ledger_lock
-- The transaction was begun with the write lock: nobody else can be here.
SELECT :lock IS NOT NULL;

-- name: ledger_columns
-- The columns of the ledger; none when there is no ledger.
SELECT name FROM pragma_table_info(:ledger) ORDER BY cid;

-- name: strangers
-- Some tables that somebody made, SQLite's and our own aside.
SELECT name FROM sqlite_master
WHERE type = 'table' AND :place IS NULL AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'fencerow_*'
ORDER BY name
LIMIT 3;

-- name: make_ledger
-- The ledger itself is no migration: it comes before the first.
CREATE TABLE fencerow.ledger (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('applied', 'started', 'reverting')),
    holder TEXT,
    attempt INTEGER NOT NULL DEFAULT 1,
    lease_until REAL,
    noted_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%fZ', 'now')),
    noted_by TEXT
);

-- name: read_ledger
-- Every migration that ran or began to, in order; the last column is what is left of a lease.
SELECT version, name, checksum, state, attempt, lease_until - (julianday('now') - 2440587.5) * 86400.0
FROM fencerow.ledger
ORDER BY version;

-- name: this_transaction
-- A migration cannot end it here: the connection refuses.
SELECT 'this one';

-- name: forget_settings
-- A connection keeps what PRAGMA says, and none of it changes where the ledger is.
SELECT 1;

-- name: note_migrated
-- Note a migration in the transaction that ran it: both or neither.
INSERT INTO fencerow.ledger (version, name, checksum, state, noted_by)
VALUES (:version, :name, :checksum, 'applied', :actor);

-- name: forget_migrated
-- Forget a migration in the transaction that took it back. Guard: it is whole, or begun by somebody whose lease has passed.
DELETE FROM fencerow.ledger
WHERE version = :version AND (state = 'applied' OR lease_until <= (julianday('now') - 2440587.5) * 86400.0)
RETURNING version;

-- name: take_apart
-- Begin, or take over, a migration that runs outside of a transaction; the attempt is the fence of whoever runs it.
-- Guard: it is not begun, or whole where it shall be taken back, or its holder's lease has passed.
INSERT INTO fencerow.ledger AS known (version, name, checksum, state, holder, lease_until, noted_by)
VALUES (
    :version, :name, :checksum, :doing, :holder,
    (julianday('now') - 2440587.5) * 86400.0 + :lease_s, :actor
)
ON CONFLICT (version) DO UPDATE
SET name = excluded.name,
    checksum = excluded.checksum,
    state = excluded.state,
    holder = excluded.holder,
    attempt = known.attempt + 1,
    lease_until = excluded.lease_until,
    noted_at = excluded.noted_at,
    noted_by = excluded.noted_by
WHERE (known.state = 'applied' AND excluded.state = 'reverting')
   OR (known.state <> 'applied' AND known.lease_until <= (julianday('now') - 2440587.5) * 86400.0)
RETURNING attempt;

-- name: renew_apart
-- Move the lease of a migration on. Guard: it is still this holder's, in this attempt.
UPDATE fencerow.ledger
SET lease_until = (julianday('now') - 2440587.5) * 86400.0 + :lease_s
WHERE version = :version AND state <> 'applied' AND holder = :holder AND attempt = :attempt
RETURNING attempt;

-- name: finish_apart
-- Note that a migration outside of a transaction is whole. Guard: still this holder's, in this attempt.
UPDATE fencerow.ledger
SET state = 'applied', holder = NULL, lease_until = NULL, noted_at = strftime('%Y-%m-%d %H:%M:%fZ', 'now')
WHERE version = :version AND state = 'started' AND holder = :holder AND attempt = :attempt
RETURNING version;

-- name: finish_revert
-- Forget a migration that was taken back outside of a transaction. Guard: still this holder's, in this attempt.
DELETE FROM fencerow.ledger
WHERE version = :version AND state = 'reverting' AND holder = :holder AND attempt = :attempt
RETURNING version;

-- name: statements_under_way
-- A statement ends with its process here, so none does.
SELECT :mark IS NULL AND :session IS NULL;
