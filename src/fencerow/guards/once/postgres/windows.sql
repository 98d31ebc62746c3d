-- Dedupe windows: the first of equal things within some seconds is new, and the others get its value.

-- name: admit
-- Be the first of a window, before anything is done about it. Waits for a concurrent first one to commit or abort.
-- Guard: nobody was first, or that one's window is over.
INSERT INTO fencerow.dedupe_windows AS known (name, key, value, token, until)
VALUES (:name, :key, :value, CAST(:token AS uuid), fencerow.now() + fencerow.seconds(:window_s))
ON CONFLICT (name, key) DO UPDATE
SET value = EXCLUDED.value,
    token = EXCLUDED.token,
    until = fencerow.now() + fencerow.seconds(:window_s)
WHERE known.until <= fencerow.now()
RETURNING value;

-- name: read_admitted
-- Who was first. A statement of its own: an admitting one that was refused has a snapshot older than the winner's
-- commit.
SELECT known.value, known.token, known.until <= (SELECT fencerow.now()) AS over
FROM fencerow.dedupe_windows AS known
WHERE known.name = :name
  AND known.key = :key;

-- name: withdraw_admitted
-- Take an admission back when what it was for could not be done: the next one is new.
-- Guard: the token of this admission, so that a later first one stays.
DELETE FROM fencerow.dedupe_windows
WHERE name = :name
  AND key = :key
  AND token = CAST(:token AS uuid)
RETURNING key;

-- name: purge_windows
-- Forget what was admitted in windows that are over.
-- Guard: the window's end again, for those that were opened anew meanwhile.
DELETE FROM fencerow.dedupe_windows AS known
WHERE known.ctid = ANY(ARRAY(
       SELECT old.ctid
       FROM fencerow.dedupe_windows AS old
       WHERE old.until <= (SELECT fencerow.now())
       ORDER BY old.until
       LIMIT :limit
       FOR UPDATE SKIP LOCKED))
  AND known.until <= (SELECT fencerow.now())
RETURNING known.key;

-- name: once_leftovers
-- Keys and windows that have been over for longer than the age, counted up to the limit.
SELECT (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.once_keys WHERE expires_at < (SELECT fencerow.now()) - fencerow.seconds(:age_s) LIMIT :limit) AS keys_over)
     + (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.dedupe_windows WHERE until < (SELECT fencerow.now()) - fencerow.seconds(:age_s) LIMIT :limit) AS windows_over);
