-- What is written of a source whose rows in a user's table are replaced, and who computes the next rows.

-- name: read_source
-- What stands there of a source, and whether somebody computes.
SELECT known.number, known.version, known.content_hash, known.written_number, known.written_by, known.owner,
       known.attempt, known.token, known.reserved_version, known.reserved_hash,
       known.token IS NOT NULL AND known.until > fencerow.now() AS reserved
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
    :target, :source, 1, :owner, :attempt, :token, :version, :content_hash,
    fencerow.now() + CAST(:stale_s * 1000000 AS INTEGER), fencerow.now()
)
ON CONFLICT (target, source) DO UPDATE
SET number = known.number + 1,
    owner = excluded.owner,
    attempt = excluded.attempt,
    token = excluded.token,
    reserved_version = excluded.reserved_version,
    reserved_hash = excluded.reserved_hash,
    until = fencerow.now() + CAST(:stale_s * 1000000 AS INTEGER),
    touched_at = fencerow.now()
WHERE (known.version IS NULL OR known.version < excluded.reserved_version)
  AND (known.written_number > 0 AND known.content_hash = excluded.reserved_hash) IS NOT TRUE
  AND (known.token IS NULL
       OR known.until <= fencerow.now()
       OR known.owner = excluded.owner AND known.attempt < excluded.attempt
       OR known.token = excluded.token
       OR (known.reserved_hash = excluded.reserved_hash) IS NOT TRUE
          AND (known.reserved_version >= excluded.reserved_version) IS NOT TRUE)
RETURNING number;

-- name: confirm_source
-- The content that is written is also that of a newer version or reservation: what was begun before it is outdated.
-- Guard: it is the same content, and newer.
UPDATE fencerow.sources
SET version = COALESCE(:version, version),
    number = number + 1,
    written_number = number + 1,
    touched_at = fencerow.now()
WHERE target = :target
  AND source = :source
  AND written_number > 0
  AND content_hash = :content_hash
  AND CASE
          WHEN :version IS NOT NULL THEN version IS NULL OR version < :version
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
    :target, :source, :number, :version, :content_hash, :number,
    :token, :row_count, fencerow.now()
)
ON CONFLICT (target, source) DO UPDATE
SET number = MAX(known.number, excluded.number),
    version = excluded.version,
    content_hash = excluded.content_hash,
    written_number = excluded.written_number,
    written_by = excluded.written_by,
    row_count = excluded.row_count,
    token = CASE WHEN known.token = excluded.written_by THEN NULL ELSE known.token END,
    touched_at = fencerow.now()
WHERE CASE
          WHEN excluded.version IS NOT NULL THEN known.version IS NULL OR known.version < excluded.version
          ELSE known.version IS NULL AND known.written_number < excluded.written_number
      END
RETURNING number;

-- name: renew_source
-- Move the end of the reservation, for a computation that takes longer.
-- Guard: the token of this reservation.
UPDATE fencerow.sources
SET until = fencerow.now() + CAST(:stale_s * 1000000 AS INTEGER)
WHERE target = :target
  AND source = :source
  AND token = :token
RETURNING number;

-- name: release_source
-- Give a reservation back whose computation failed, so that another may begin at once.
-- Guard: the token of this reservation.
UPDATE fencerow.sources
SET token = NULL
WHERE target = :target
  AND source = :source
  AND token = :token
RETURNING number;

-- name: forget_source
-- Forget a source altogether: whatever comes next is new.
DELETE FROM fencerow.sources
WHERE target = :target
  AND source = :source
RETURNING number;

-- name: purge_sources
-- Forget sources that were emptied, or reserved and never written, longer ago than the age.
DELETE FROM fencerow.sources
WHERE (target, source) IN (SELECT old.target, old.source
                           FROM fencerow.sources AS old
                           WHERE (old.row_count = 0 OR old.written_number = 0)
                             AND old.touched_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
                           ORDER BY old.touched_at
                           LIMIT :limit)
RETURNING source;

-- name: respell_source
-- What was noted under another spelling of the same table and source goes on under the one spelling. What stands there
-- already is newer, and stays.
UPDATE OR IGNORE fencerow.sources
SET target = :target, source = :source
WHERE target = :old_target
  AND source = :old_source
RETURNING number;

-- name: columns_of_users_table
-- The columns of a user's table, in order, and the one spelling of its name: as it was created. Columns here have no
-- type that would decide about a value. No row when there is no such table.
SELECT field.name,
    NULL,
    coalesce((SELECT known.name FROM sqlite_master AS known
              WHERE known.name = :target COLLATE NOCASE AND known.type IN ('table', 'view')), :target)
FROM pragma_table_info(:target) AS field
ORDER BY field.cid;
