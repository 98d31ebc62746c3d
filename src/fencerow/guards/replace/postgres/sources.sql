-- What is written of a source whose rows in a user's table are replaced, and who computes the next rows.

-- name: read_source
-- What stands there of a source, and whether somebody computes.
SELECT known.number, known.version, known.content_hash, known.written_number, known.written_by, known.owner,
       known.attempt, known.token, known.reserved_version, known.reserved_hash,
       known.token IS NOT NULL AND known.until > (SELECT fencerow.now()) AS reserved
FROM fencerow.sources AS known
WHERE known.target = :target
  AND known.source = :source;

-- name: reserve_source
-- Say who computes the rows of a source now; the number orders those that have no version.
-- Guard: the content is newer than what is written and is not the same, and nobody else computes the same or newer:
-- but an older attempt of the same owner, or this very reservation, whose answer was lost.
INSERT INTO fencerow.sources AS known (
    target, source, number, owner, attempt, token, reserved_version, reserved_hash, until, touched_at
)
VALUES (
    :target, :source, 1, :owner, CAST(:attempt AS bigint), CAST(:token AS uuid), CAST(:version AS bigint),
    CAST(:content_hash AS text), fencerow.now() + fencerow.seconds(:stale_s), fencerow.now()
)
ON CONFLICT (target, source) DO UPDATE
SET number = known.number + 1,
    owner = EXCLUDED.owner,
    attempt = EXCLUDED.attempt,
    token = EXCLUDED.token,
    reserved_version = EXCLUDED.reserved_version,
    reserved_hash = EXCLUDED.reserved_hash,
    until = fencerow.now() + fencerow.seconds(:stale_s),
    touched_at = fencerow.now()
WHERE (known.version IS NULL OR known.version < EXCLUDED.reserved_version)
  AND (known.written_number > 0 AND known.content_hash = EXCLUDED.reserved_hash) IS NOT TRUE
  AND (known.token IS NULL
       OR known.until <= fencerow.now()
       OR known.owner = EXCLUDED.owner AND known.attempt < EXCLUDED.attempt
       OR known.token = EXCLUDED.token
       OR (known.reserved_hash = EXCLUDED.reserved_hash) IS NOT TRUE
          AND (known.reserved_version >= EXCLUDED.reserved_version) IS NOT TRUE)
RETURNING number;

-- name: confirm_source
-- The content that is written is also that of a newer version or reservation: what was begun before it is outdated.
-- Guard: it is the same content, and newer.
UPDATE fencerow.sources
SET version = COALESCE(CAST(:version AS bigint), version),
    number = number + 1,
    written_number = number + 1,
    touched_at = fencerow.now()
WHERE target = :target
  AND source = :source
  AND written_number > 0
  AND content_hash = :content_hash
  AND CASE
          WHEN CAST(:version AS bigint) IS NOT NULL THEN version IS NULL OR version < CAST(:version AS bigint)
          ELSE version IS NULL AND number > written_number
      END
RETURNING number;

-- name: stamp_source
-- Say what is written of a source: the first statement of the transaction that replaces its rows. It takes the row's
-- lock, so replacements of one source stand in a line, and what follows sees what the one before has left.
-- Guard: this is newer than what is written: by version where there is one, else by number.
INSERT INTO fencerow.sources AS known (
    target, source, number, version, content_hash, written_number, written_by, row_count, touched_at
)
VALUES (
    :target, :source, :number, CAST(:version AS bigint), CAST(:content_hash AS text), :number,
    CAST(:token AS uuid), CAST(:row_count AS bigint), fencerow.now()
)
ON CONFLICT (target, source) DO UPDATE
SET number = GREATEST(known.number, EXCLUDED.number),
    version = EXCLUDED.version,
    content_hash = EXCLUDED.content_hash,
    written_number = EXCLUDED.written_number,
    written_by = EXCLUDED.written_by,
    row_count = EXCLUDED.row_count,
    token = CASE WHEN known.token = EXCLUDED.written_by THEN NULL ELSE known.token END,
    touched_at = fencerow.now()
WHERE CASE
          WHEN EXCLUDED.version IS NOT NULL THEN known.version IS NULL OR known.version < EXCLUDED.version
          ELSE known.version IS NULL AND known.written_number < EXCLUDED.written_number
      END
RETURNING number;

-- name: renew_source
-- Move the end of the reservation, for a computation that takes longer.
-- Guard: the token of this reservation.
UPDATE fencerow.sources
SET until = fencerow.now() + fencerow.seconds(:stale_s)
WHERE target = :target
  AND source = :source
  AND token = CAST(:token AS uuid)
RETURNING number;

-- name: release_source
-- Give a reservation back whose computation failed, so that another may begin at once.
-- Guard: the token of this reservation.
UPDATE fencerow.sources
SET token = NULL
WHERE target = :target
  AND source = :source
  AND token = CAST(:token AS uuid)
RETURNING number;

-- name: forget_source
-- Forget a source altogether: whatever comes next is new.
DELETE FROM fencerow.sources
WHERE target = :target
  AND source = :source
RETURNING number;

-- name: purge_sources
-- Forget sources that were emptied, or reserved and never written, longer ago than the age.
-- Guard: the age again, for those that were touched meanwhile.
DELETE FROM fencerow.sources AS known
WHERE known.ctid = ANY(ARRAY(
       SELECT old.ctid
       FROM fencerow.sources AS old
       WHERE (old.row_count = 0 OR old.written_number = 0)
         AND old.touched_at < (SELECT fencerow.now()) - fencerow.seconds(:age_s)
       ORDER BY old.touched_at
       LIMIT :limit
       FOR UPDATE SKIP LOCKED))
  AND (known.row_count = 0 OR known.written_number = 0)
  AND known.touched_at < (SELECT fencerow.now()) - fencerow.seconds(:age_s)
RETURNING known.source;

-- name: respell_source
-- What was noted under another spelling of the same table and source goes on under the one spelling. What stands there
-- already is newer, and stays.
WITH old AS (
    DELETE FROM fencerow.sources
    WHERE target = :old_target
      AND source = :old_source
    RETURNING number, version, content_hash, written_number, written_by, row_count, owner, token,
        reserved_version, reserved_hash, until, touched_at
)
INSERT INTO fencerow.sources (
    target, source, number, version, content_hash, written_number, written_by, row_count, owner, token,
    reserved_version, reserved_hash, until, touched_at
)
SELECT :target, :source, number, version, content_hash, written_number, written_by, row_count, owner, token,
    reserved_version, reserved_hash, until, touched_at
FROM old
ON CONFLICT (target, source) DO NOTHING
RETURNING number;

-- name: columns_of_users_table
-- The columns of a user's table, in order, with their types, and the one spelling of its name: without the schema where
-- the name alone leads there. No row when there is no such table.
SELECT attribute.attname,
    format_type(attribute.atttypid, -1),
    CASE WHEN pg_table_is_visible(rel.oid) THEN rel.relname ELSE space.nspname || '.' || rel.relname END
FROM pg_class AS rel
JOIN pg_namespace AS space ON space.oid = rel.relnamespace
JOIN pg_attribute AS attribute ON attribute.attrelid = rel.oid
WHERE rel.oid = to_regclass(:target)
  AND attribute.attnum > 0
  AND NOT attribute.attisdropped
ORDER BY attribute.attnum;
