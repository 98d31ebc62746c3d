-- Limits: defining them, and counting under their locks.

-- name: read_limits
-- The limits of these names, or all; in the order of `LimitRecord`.
SELECT CAST(json_build_array(
    known.name, known.definition, known.revision, known.version, fencerow.us(known.set_at), known.set_by, known.reason,
    state.state, fencerow.us(fencerow.now())
) AS text)
FROM fencerow.limits AS known
LEFT JOIN fencerow.limit_states AS state ON state.name = known.name
WHERE CAST(:names AS text[]) IS NULL OR known.name = ANY(CAST(:names AS text[]))
ORDER BY known.name;

-- name: declare_limit
-- Store what code declares. Guard: nobody knows the limit, or only an older declaration of it. What people have set since
-- stays as long as the declaration is the same.
INSERT INTO fencerow.limits AS known (name, definition, version, declared, set_at, set_by, reason)
VALUES (:name, :definition, CAST(:version AS bigint), :definition, (SELECT fencerow.now()), CAST(:actor AS text), 'declared')
ON CONFLICT (name) DO UPDATE
SET definition = EXCLUDED.definition, version = EXCLUDED.version, declared = EXCLUDED.declared,
    set_at = EXCLUDED.set_at, set_by = EXCLUDED.set_by, reason = EXCLUDED.reason, revision = known.revision + 1
WHERE known.version < EXCLUDED.version
RETURNING known.revision;

-- name: declared_limit
-- Under which version a limit is declared, and as what.
SELECT known.version, known.declared, known.set_by
FROM fencerow.limits AS known
WHERE known.name = :name;

-- name: define_limit
-- Make a limit. Guard: there is none of that name.
INSERT INTO fencerow.limits (name, definition, set_at, set_by, reason)
VALUES (:name, :definition, (SELECT fencerow.now()), CAST(:actor AS text), CAST(:reason AS text))
ON CONFLICT (name) DO NOTHING
RETURNING revision;

-- name: redefine_limit
-- Change a limit. Guard: still at the revision that was seen: of two changes at once one wins, and the other is told.
UPDATE fencerow.limits AS known
SET definition = :definition, revision = known.revision + 1, set_at = (SELECT fencerow.now()),
    set_by = CAST(:actor AS text), reason = CAST(:reason AS text)
WHERE known.name = :name AND known.revision = CAST(:revision AS bigint)
RETURNING known.revision;

-- name: remove_limit
-- Forget a limit. Guard: still at the revision that was seen.
DELETE FROM fencerow.limits AS known
WHERE known.name = :name AND known.revision = CAST(:revision AS bigint)
RETURNING known.name;

-- name: make_limit_state
-- The row that is locked for each start. Guard: there is none yet.
INSERT INTO fencerow.limit_states (name, state, changed_at)
SELECT made.name, '{}', fencerow.now()
FROM unnest(CAST(:names AS text[])) AS made (name)
ORDER BY made.name
ON CONFLICT (name) DO NOTHING
RETURNING name;

-- name: forget_limit_states
-- Remove what is remembered of a limit and, if jobs name it, of all its keys.
DELETE FROM fencerow.limit_states AS state
WHERE state.name = :name OR (CAST(:keys AS integer) = 1 AND starts_with(state.name, :name || '/'))
RETURNING state.name;

-- name: limit_queue
-- Let claims from a queue look at its limit, or not any more. The queue without a name stands for all.
INSERT INTO fencerow.queues AS known (name, limited)
VALUES (:queue, CAST(:limited AS integer) = 1)
ON CONFLICT (name) DO UPDATE
SET limited = EXCLUDED.limited
RETURNING known.name;

-- name: lock_queue_limits
-- What bounds a claim from this queue, locked in the order of the names until the transaction ends. Whoever counts after
-- this counts all that others started under the limit: a claim under way has the lock. Both rows are locked: of one that
-- is not, this would read what it was before the wait for the other.
SELECT known.name, known.definition, state.state, fencerow.us(fencerow.now())
FROM fencerow.limits AS known
JOIN fencerow.limit_states AS state ON state.name = known.name
WHERE known.name IN ('fleet', 'queue:' || :queue)
ORDER BY known.name
FOR UPDATE;

-- name: count_running
-- How many jobs run, of this queue and in all. A statement of its own, after the lock: in one with it, the count would be
-- as old as the wait for the lock.
SELECT count(*) FILTER (WHERE job.queue = :queue), count(*)
FROM fencerow.jobs AS job
WHERE job.state = 'running';

-- name: write_limit_state
-- Keep what is remembered after starts. The row is locked by this transaction.
UPDATE fencerow.limit_states AS state
SET state = :state, changed_at = fencerow.now()
WHERE state.name = :name
RETURNING state.name;
