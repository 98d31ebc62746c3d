-- Indexes of our own tables, built beside the work of others: outside of a transaction, under a lease in the row of the
-- migration that is under way. The lease only keeps migrators apart who would otherwise stop each other. What holds
-- without it: an index that is whole is dropped by nobody, because only what was set aside is ever dropped.

-- name: take_work
-- Take the row for building, under the migrators' lock. Guard: nobody's lease runs.
INSERT INTO fencerow.schema_work AS known (one, version, checksum, parts, attempt, holder, until)
VALUES (
    1, CAST(:version AS integer), :checksum, CAST(:parts AS integer), 1, :holder,
    clock_timestamp() + CAST(:lease_s AS double precision) * INTERVAL '1 second'
)
ON CONFLICT (one) DO UPDATE
SET version = excluded.version,
    checksum = excluded.checksum,
    parts = excluded.parts,
    attempt = known.attempt + 1,
    holder = excluded.holder,
    until = excluded.until
WHERE known.until IS NULL OR known.until <= clock_timestamp()
RETURNING attempt;

-- name: renew_work
-- Move the lease on, or end it with 0. Guard: it is still this holder's, in this attempt.
UPDATE fencerow.schema_work
SET until = clock_timestamp() + CAST(:lease_s AS double precision) * INTERVAL '1 second'
WHERE one = 1 AND holder = :holder AND attempt = CAST(:attempt AS bigint)
RETURNING attempt;

-- name: hold_work
-- Keep the row until the end of this transaction: nobody takes it over meanwhile. Guard: still this holder's.
SELECT attempt FROM fencerow.schema_work
WHERE one = 1 AND holder = :holder AND attempt = CAST(:attempt AS bigint)
FOR UPDATE;

-- name: finish_work
-- Release the row, and note that all indexes of a part are there (:parts; 0 where no part was built). Guard: still this
-- holder's, in this attempt.
UPDATE fencerow.schema_work
SET parts = parts + CAST(:parts AS integer), holder = NULL, until = NULL
WHERE one = 1 AND holder = :holder AND attempt = CAST(:attempt AS bigint)
RETURNING parts;

-- name: be_brief
-- For this transaction: a lock on a table is waited for so long, while others wait behind us, and asked for again later.
SET LOCAL lock_timeout = '500ms';

-- name: make_vacuum_yield
-- A vacuum of the server's own holds these tables for as long as it takes, and gives way only to who has waited longer
-- than deadlock_timeout. This lock stops neither readers nor writers, so it may be waited for; then the brief one succeeds.
SET LOCAL lock_timeout = '3s';
LOCK TABLE fencerow.jobs, fencerow.finished_jobs IN SHARE UPDATE EXCLUSIVE MODE;
SET LOCAL lock_timeout TO DEFAULT;

-- name: find_index
-- What has this name beside the table: the schema, whether the table has partitions, whether anything is there, and of an
-- index of this table whether it is whole, and what it is.
SELECT quote_ident(space.nspname), tab.relkind = 'p', rel.oid IS NOT NULL,
    made.indisvalid AND made.indisready,
    CASE WHEN made.indisunique THEN 'UNIQUE ' ELSE '' END
        || substring(pg_get_indexdef(made.indexrelid) FROM ' (USING .*)$')
FROM pg_class AS tab
JOIN pg_namespace AS space ON space.oid = tab.relnamespace
LEFT JOIN pg_class AS rel ON rel.relnamespace = tab.relnamespace AND rel.relname = :name
LEFT JOIN pg_index AS made ON made.indexrelid = rel.oid AND made.indrelid = tab.oid
WHERE tab.oid = to_regclass(CAST(:tab AS text));

-- name: set_aside_indexes
-- What was set aside of this index and is to be dropped: parts of it that were cut off in the middle.
SELECT quote_ident(rel.relname)
FROM pg_index AS made
JOIN pg_class AS rel ON rel.oid = made.indexrelid
WHERE made.indrelid = to_regclass(CAST(:tab AS text)) AND rel.relname ~ ('^' || :name || '_left_[0-9]+$');

-- name: building_under_way
-- Whether the server still works on a statement of that mark: the client may be dead and its lease past, yet it goes on.
SELECT EXISTS (
    SELECT 1 FROM pg_stat_activity AS act
    WHERE act.datname = current_database()
      AND act.pid <> pg_backend_pid()
      AND act.state = 'active'
      AND starts_with(act.query, CAST(:mark AS text))
);

-- name: leaves_without_index
-- The partitions that no part of this index hangs from yet. One that is made meanwhile brings its part along; one that is
-- being detached needs none.
SELECT quote_ident(space.nspname) || '.' || quote_ident(leaf.relname), leaf.relname
FROM pg_inherits AS link
JOIN pg_class AS leaf ON leaf.oid = link.inhrelid
JOIN pg_namespace AS space ON space.oid = leaf.relnamespace
WHERE link.inhparent = to_regclass(CAST(:tab AS text))
  AND NOT link.inhdetachpending
  AND NOT EXISTS (
        SELECT 1
        FROM pg_index AS made
        JOIN pg_inherits AS hangs ON hangs.inhrelid = made.indexrelid
        JOIN pg_class AS whole ON whole.oid = hangs.inhparent AND whole.relname = :name
        WHERE made.indrelid = leaf.oid
    )
ORDER BY leaf.relname;

-- name: broken_indexes
-- Indexes of these names that are there but not whole, of tables in our schema.
SELECT rel.relname, quote_ident(space.nspname) || '.' || quote_ident(tab.relname), made.indisunique,
    substring(pg_get_indexdef(made.indexrelid) FROM ' (USING .*)$')
FROM pg_index AS made
JOIN pg_class AS rel ON rel.oid = made.indexrelid
JOIN pg_class AS tab ON tab.oid = made.indrelid
JOIN pg_namespace AS space ON space.oid = tab.relnamespace
WHERE tab.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(CAST(:ledger AS text)))
  AND rel.relname = ANY(CAST(:names AS text[]))
  AND NOT (made.indisvalid AND made.indisready)
ORDER BY rel.relname;

-- name: building_progress
-- How far the server is with an index of our schema that is being built, and for whom it waits.
SELECT tab.relname, progress.phase, progress.blocks_done, progress.blocks_total, progress.tuples_done,
    progress.tuples_total, progress.lockers_total - progress.lockers_done, progress.current_locker_pid,
    act.application_name, extract(epoch FROM clock_timestamp() - act.xact_start)
FROM pg_stat_progress_create_index AS progress
JOIN pg_class AS tab ON tab.oid = progress.relid
LEFT JOIN pg_stat_activity AS act ON act.pid = progress.current_locker_pid
WHERE progress.datname = current_database()
  AND tab.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(CAST(:ledger AS text)));
