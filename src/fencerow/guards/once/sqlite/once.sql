-- Keys of operations that are done once: taken before the effect, ended after it.

-- name: reserve_once
-- Take a key for one owner, before the effect.
-- Guard: nobody has it; or its lifetime is over; or it is not done, for the same payload, and either past its lease, or
-- left by an older attempt of the same owner, or this very taking's, whose answer was lost. The same attempt is refused,
-- since it may be at work in another of its threads or coroutines, and an older attempt takes nothing from a newer one.
INSERT INTO fencerow.once_keys AS known (
    scope, key, owner, attempt, token, fingerprint, reserved_at, until, expires_at
)
VALUES (
    :scope, :key, :owner, :attempt, :token, :fingerprint, fencerow.now(),
    fencerow.now() + CAST(:stale_s * 1000000 AS INTEGER), fencerow.now() + CAST(:kept_s * 1000000 AS INTEGER)
)
ON CONFLICT (scope, key) DO UPDATE
SET owner = excluded.owner,
    attempt = excluded.attempt,
    token = excluded.token,
    fingerprint = excluded.fingerprint,
    reserved_at = excluded.reserved_at,
    until = excluded.until,
    expires_at = excluded.expires_at,
    done_at = NULL,
    result = NULL
WHERE known.expires_at <= fencerow.now()
   OR known.done_at IS NULL
      AND known.fingerprint = excluded.fingerprint
      AND (known.owner = excluded.owner AND known.attempt > excluded.attempt) IS NOT TRUE
      AND (known.until <= fencerow.now()
           OR known.owner = excluded.owner AND known.attempt < excluded.attempt
           OR known.token = excluded.token)
RETURNING owner;

-- name: read_once
-- Who has a key, and what came of it.
SELECT known.owner, known.attempt, known.token, known.fingerprint, known.done_at IS NOT NULL AS done,
       known.result, known.reserved_at AS reserved_at_us,
       known.until <= fencerow.now() AS lapsed, known.expires_at <= fencerow.now() AS over
FROM fencerow.once_keys AS known
WHERE known.scope = :scope
  AND known.key = :key;

-- name: end_once
-- Keep the result of the effect; the lifetime of the key counts from now.
-- Guard: the token of this taking, so what another took over after the lease is not overwritten.
UPDATE fencerow.once_keys
SET done_at = fencerow.now(),
    expires_at = fencerow.now() + CAST(:lifetime_s * 1000000 AS INTEGER),
    result = :result
WHERE scope = :scope
  AND key = :key
  AND token = :token
  AND done_at IS NULL
RETURNING owner;

-- name: renew_once
-- Move the end of the lease, for an effect that takes longer.
-- Guard: the token of this taking. A lapsed lease that nobody took over may still be renewed.
UPDATE fencerow.once_keys
SET until = fencerow.now() + CAST(:stale_s * 1000000 AS INTEGER),
    expires_at = fencerow.now() + CAST(:kept_s * 1000000 AS INTEGER)
WHERE scope = :scope
  AND key = :key
  AND token = :token
  AND done_at IS NULL
RETURNING owner;

-- name: release_once
-- Give a key back after a failure, so that the effect may be tried again at once.
-- Guard: the token of this taking, and that it was not ended.
DELETE FROM fencerow.once_keys
WHERE scope = :scope
  AND key = :key
  AND token = :token
  AND done_at IS NULL
RETURNING owner;

-- name: purge_once
-- Forget keys whose lifetime is over.
DELETE FROM fencerow.once_keys
WHERE (scope, key) IN (SELECT old.scope, old.key
                       FROM fencerow.once_keys AS old
                       WHERE old.expires_at <= fencerow.now()
                       ORDER BY old.expires_at
                       LIMIT :limit)
RETURNING key;
