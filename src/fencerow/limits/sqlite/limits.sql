-- Limits: defining them, and counting under their locks.

-- name: read_limits
-- The limits of these names, or all; in the order of `LimitRecord`.
SELECT json_array(
    known.name, known.definition, known.revision, known.version, known.set_at, known.set_by, known.reason,
    state.state, fencerow.now()
)
FROM fencerow.limits AS known
LEFT JOIN fencerow.limit_states AS state ON state.name = known.name
WHERE :names IS NULL OR known.name IN (SELECT value FROM json_each(:names))
ORDER BY known.name;

-- name: declare_limit
-- Store what code declares. Guard: nobody knows the limit, or only an older declaration of it. What people have set since
-- stays as long as the declaration is the same.
INSERT INTO fencerow.limits AS known (name, definition, version, declared, set_at, set_by, reason)
VALUES (:name, :definition, :version, :definition, fencerow.now(), :actor, 'declared')
ON CONFLICT (name) DO UPDATE
SET definition = excluded.definition, version = excluded.version, declared = excluded.declared,
    set_at = excluded.set_at, set_by = excluded.set_by, reason = excluded.reason, revision = known.revision + 1
WHERE known.version < excluded.version
RETURNING revision;

-- name: declared_limit
-- Under which version a limit is declared, and as what.
SELECT known.version, known.declared, known.set_by
FROM fencerow.limits AS known
WHERE known.name = :name;

-- name: define_limit
-- Make a limit. Guard: there is none of that name.
INSERT INTO fencerow.limits (name, definition, set_at, set_by, reason)
VALUES (:name, :definition, fencerow.now(), :actor, :reason)
ON CONFLICT (name) DO NOTHING
RETURNING revision;

-- name: redefine_limit
-- Change a limit. Guard: still at the revision that was seen: of two changes at once one wins, and the other is told.
UPDATE fencerow.limits
SET definition = :definition, revision = revision + 1, set_at = fencerow.now(), set_by = :actor, reason = :reason
WHERE name = :name AND revision = :revision
RETURNING revision;

-- name: remove_limit
-- Forget a limit. Guard: still at the revision that was seen.
DELETE FROM fencerow.limits
WHERE name = :name AND revision = :revision
RETURNING name;

-- name: make_limit_state
-- The row that is written for each start. Guard: there is none yet.
INSERT INTO fencerow.limit_states (name, state, changed_at)
SELECT value, '{}', fencerow.now()
FROM json_each(:names)
WHERE true
ON CONFLICT (name) DO NOTHING
RETURNING name;

-- name: forget_limit_states
-- Remove what is remembered of a limit and, if jobs name it, of all its keys.
DELETE FROM fencerow.limit_states
WHERE name = :name OR (:keys = 1 AND substr(name, 1, length(:name) + 1) = :name || '/')
RETURNING name;

-- name: limit_queue
-- Let claims from a queue look at its limit, or not any more. The queue without a name stands for all.
INSERT INTO fencerow.queues (name, limited)
VALUES (:queue, :limited)
ON CONFLICT (name) DO UPDATE
SET limited = excluded.limited
RETURNING name;

-- name: lock_queue_limits
-- What bounds a claim from this queue. The transaction has the file's one write lock already.
SELECT known.name, known.definition, state.state, fencerow.now()
FROM fencerow.limits AS known
JOIN fencerow.limit_states AS state ON state.name = known.name
WHERE known.name IN ('fleet', 'queue:' || :queue)
ORDER BY known.name;

-- name: count_running
-- How many jobs run, of this queue and in all.
SELECT count(CASE WHEN job.queue = :queue THEN 1 END), count(*)
FROM fencerow.jobs AS job
WHERE job.state = 'running';

-- name: write_limit_state
-- Keep what is remembered after starts.
UPDATE fencerow.limit_states
SET state = :state, changed_at = fencerow.now()
WHERE name = :name
RETURNING name;
