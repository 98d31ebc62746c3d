-- Dedupe windows: the first of equal things within some seconds is new, and the others get its value.

-- name: admit
-- Be the first of a window, before anything is done about it.
-- Guard: nobody was first, or that one's window is over.
INSERT INTO fencerow.dedupe_windows AS known (name, key, value, token, until)
VALUES (:name, :key, :value, :token, fencerow.now() + CAST(:window_s * 1000000 AS INTEGER))
ON CONFLICT (name, key) DO UPDATE
SET value = excluded.value,
    token = excluded.token,
    until = excluded.until
WHERE known.until <= fencerow.now()
RETURNING value;

-- name: read_admitted
-- Who was first.
SELECT known.value, known.token, known.until <= fencerow.now() AS over
FROM fencerow.dedupe_windows AS known
WHERE known.name = :name
  AND known.key = :key;

-- name: withdraw_admitted
-- Take an admission back when what it was for could not be done: the next one is new.
-- Guard: the token of this admission, so that a later first one stays.
DELETE FROM fencerow.dedupe_windows
WHERE name = :name
  AND key = :key
  AND token = :token
RETURNING key;

-- name: purge_windows
-- Forget what was admitted in windows that are over.
DELETE FROM fencerow.dedupe_windows
WHERE (name, key) IN (SELECT old.name, old.key
                      FROM fencerow.dedupe_windows AS old
                      WHERE old.until <= fencerow.now()
                      ORDER BY old.until
                      LIMIT :limit)
RETURNING key;

-- name: once_leftovers
-- Keys and windows that have been over for longer than the age, counted up to the limit.
SELECT (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.once_keys WHERE expires_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER) LIMIT :limit) AS keys_over)
     + (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.dedupe_windows WHERE until < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER) LIMIT :limit) AS windows_over);
