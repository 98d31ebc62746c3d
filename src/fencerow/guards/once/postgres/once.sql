-- Keys of operations that are done once: taken before the effect, ended after it.

-- name: reserve_once
-- Take a key for one owner, before the effect. Waits for a concurrent taker to commit (then the key is its) or abort.
-- Guard: nobody has it; or its lifetime is over; or it is not done, for the same payload, and either past its lease, or
-- left by an older attempt of the same owner, or this very taking's, whose answer was lost. The same attempt is refused,
-- since it may be at work in another of its threads or coroutines, and an older attempt takes nothing from a newer one.
INSERT INTO fencerow.once_keys AS known (
    scope, key, owner, attempt, token, fingerprint, reserved_at, until, expires_at
)
VALUES (
    :scope, :key, :owner, CAST(:attempt AS bigint), CAST(:token AS uuid), :fingerprint, fencerow.now(),
    fencerow.now() + fencerow.seconds(:stale_s), fencerow.now() + fencerow.seconds(:kept_s)
)
ON CONFLICT (scope, key) DO UPDATE
SET owner = EXCLUDED.owner,
    attempt = EXCLUDED.attempt,
    token = EXCLUDED.token,
    fingerprint = EXCLUDED.fingerprint,
    reserved_at = fencerow.now(),
    until = fencerow.now() + fencerow.seconds(:stale_s),
    expires_at = fencerow.now() + fencerow.seconds(:kept_s),
    done_at = NULL,
    result = NULL
WHERE known.expires_at <= fencerow.now()
   OR known.done_at IS NULL
      AND known.fingerprint = EXCLUDED.fingerprint
      AND (known.owner = EXCLUDED.owner AND known.attempt > EXCLUDED.attempt) IS NOT TRUE
      AND (known.until <= fencerow.now()
           OR known.owner = EXCLUDED.owner AND known.attempt < EXCLUDED.attempt
           OR known.token = EXCLUDED.token)
RETURNING owner;

-- name: read_once
-- Who has a key, and what came of it. A statement of its own: a taking one that was refused has a snapshot older than
-- the winner's commit.
SELECT known.owner, known.attempt, known.token, known.fingerprint, known.done_at IS NOT NULL AS done,
       CAST(known.result AS text) AS result, fencerow.us(known.reserved_at) AS reserved_at_us,
       known.until <= (SELECT fencerow.now()) AS lapsed, known.expires_at <= (SELECT fencerow.now()) AS over
FROM fencerow.once_keys AS known
WHERE known.scope = :scope
  AND known.key = :key;

-- name: end_once
-- Keep the result of the effect; the lifetime of the key counts from now.
-- Guard: the token of this taking, so what another took over after the lease is not overwritten.
UPDATE fencerow.once_keys
SET done_at = fencerow.now(),
    expires_at = fencerow.now() + fencerow.seconds(:lifetime_s),
    result = CAST(:result AS json)
WHERE scope = :scope
  AND key = :key
  AND token = CAST(:token AS uuid)
  AND done_at IS NULL
RETURNING owner;

-- name: renew_once
-- Move the end of the lease, for an effect that takes longer.
-- Guard: the token of this taking. A lapsed lease that nobody took over may still be renewed.
UPDATE fencerow.once_keys
SET until = fencerow.now() + fencerow.seconds(:stale_s),
    expires_at = fencerow.now() + fencerow.seconds(:kept_s)
WHERE scope = :scope
  AND key = :key
  AND token = CAST(:token AS uuid)
  AND done_at IS NULL
RETURNING owner;

-- name: release_once
-- Give a key back after a failure, so that the effect may be tried again at once.
-- Guard: the token of this taking, and that it was not ended.
DELETE FROM fencerow.once_keys
WHERE scope = :scope
  AND key = :key
  AND token = CAST(:token AS uuid)
  AND done_at IS NULL
RETURNING owner;

-- name: purge_once
-- Forget keys whose lifetime is over.
-- Guard: the lifetime again, for those that were taken anew meanwhile.
DELETE FROM fencerow.once_keys AS known
WHERE known.ctid = ANY(ARRAY(
       SELECT old.ctid
       FROM fencerow.once_keys AS old
       WHERE old.expires_at <= (SELECT fencerow.now())
       ORDER BY old.expires_at
       LIMIT :limit
       FOR UPDATE SKIP LOCKED))
  AND known.expires_at <= (SELECT fencerow.now())
RETURNING known.key;
