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
-- The row that is locked for each start. Guard: there is none yet.
INSERT INTO fencerow.limit_states (name, state, changed_at)
VALUES (:name, '{}', fencerow.now())
ON CONFLICT (name) DO NOTHING
RETURNING name;

-- name: forget_limit_state
-- Remove what is remembered of the limit of a queue, or of all.
DELETE FROM fencerow.limit_states
WHERE name = :name
RETURNING name;

-- name: forget_named_limit
-- Remove what is remembered of a limit that jobs name, and of all its keys.
DELETE FROM fencerow.limit_states
WHERE name = :name OR substr(name, 1, length(:name) + 1) = :name || '/'
RETURNING name;

-- name: arrive_at_limit
-- Say that there may be room at the gates of a limit that jobs name.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.name = 'limit:' || :name OR substr(gate.name, 1, length(:name) + 7) = 'limit:' || :name || '/';

-- name: is_limited
-- Whether claims from this queue look at its limit already.
SELECT EXISTS (SELECT 1 FROM fencerow.queues AS known WHERE known.name = :queue AND known.limited);

-- name: wait_briefly
-- Nothing: the file's one write lock has been waited for.
SELECT 1;

-- name: lock_claims
-- Nothing: a claim holds the file's one write lock, as this transaction does.
SELECT 1;

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

-- name: fates_of
-- What became of jobs that got a turn, and when they started with it, if they did. An ephemeral job that succeeded has left
-- its id; it started before it ended.
SELECT job.id, job.state, CASE WHEN job.claimed_at >= COALESCE(job.turned_at, job.claimed_at) THEN job.claimed_at END
FROM fencerow.all_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT spent.id, 'succeeded', spent.ended_at
FROM fencerow.spent_ids AS spent
WHERE spent.id IN (SELECT value FROM json_each(:ids));

-- name: take_failures
-- Take what was told of failures under these limits. What is taken comes back if the transaction does not commit.
DELETE FROM fencerow.limit_failures
WHERE name IN (SELECT value FROM json_each(:names))
RETURNING name, at, COALESCE(started_at, at);

-- name: watch_failures
-- From the commit on, failures under this limit are told. Guard: none; whoever was first was enough.
INSERT INTO fencerow.watched_limits (name)
VALUES (:name)
ON CONFLICT (name) DO NOTHING;

-- name: ignore_failures
-- Failures under this limit, and of its keys, are told no more, and those that were are forgotten.
DELETE FROM fencerow.limit_failures
WHERE (name = :name OR substr(name, 1, length(:name) + 1) = :name || '/')
  AND EXISTS (SELECT 1 FROM fencerow.watched_limits AS watched WHERE watched.name = :name);
DELETE FROM fencerow.watched_limits
WHERE name = :name;

-- name: keep_limits
-- Nothing: the transaction has the file's one write lock already.
SELECT value FROM json_each(:locks) WHERE false;

-- name: read_named_limits
-- What is said of these limits, and what is remembered of each. The transaction has the file's one write lock already.
SELECT wanted.value, known.name, known.definition, state.state, fencerow.now()
FROM json_each(:names) AS wanted
JOIN fencerow.limits AS known ON known.name IN (wanted.value, substr(wanted.value, 1, instr(wanted.value || '/', '/') - 1))
LEFT JOIN fencerow.limit_states AS state ON state.name = wanted.value
ORDER BY known.name, wanted.value;

-- name: defined_limits
-- Those of these limits that are defined, and those of which they may be keys.
SELECT known.name, known.definition
FROM fencerow.limits AS known
WHERE known.name IN (SELECT wanted.value FROM json_each(:names) AS wanted)
   OR known.name IN (SELECT substr(wanted.value, 1, instr(wanted.value || '/', '/') - 1) FROM json_each(:names) AS wanted);

-- name: keep_limit_state
-- Keep what is remembered of a limit that jobs name after starts.
INSERT INTO fencerow.limit_states (name, state, changed_at)
VALUES (:name, :state, fencerow.now())
ON CONFLICT (name) DO UPDATE
SET state = excluded.state, changed_at = excluded.changed_at
RETURNING name;

-- name: limit_states_after
-- What is remembered of keys under limits, in the order of the names, and since how long it is so. What is remembered of
-- queues and of the fleet stays: claims read those rows.
SELECT state.name, state.state, fencerow.now() - state.changed_at, fencerow.now()
FROM fencerow.limit_states AS state
WHERE state.name > :after
  AND instr(state.name, '/') > 0
  AND substr(state.name, 1, 6) <> 'queue:'
ORDER BY state.name
LIMIT :limit;

-- name: forget_limit_states
-- Forget what is remembered of these keys. Guard: it is what was judged; who started under it meanwhile has changed it.
DELETE FROM fencerow.limit_states AS known
WHERE known.name IN (SELECT json_extract(idle.value, '$[0]') FROM json_each(:states) AS idle)
  AND (known.name, known.state) IN (SELECT json_extract(idle.value, '$[0]'), json_extract(idle.value, '$[1]')
                                    FROM json_each(:states) AS idle)
RETURNING name;

-- name: undefined_limits
-- Limits that live jobs name and nobody has defined, as far as their gates are known: each such job came to one.
SELECT substr(gate.name, 7)
FROM fencerow.gates AS gate
WHERE substr(gate.name, 1, 6) = 'limit:'
  AND NOT EXISTS (SELECT 1 FROM fencerow.limits AS known
                  WHERE known.name IN (substr(gate.name, 7), substr(gate.name, 7, instr(gate.name || '/', '/') - 7)))
  AND (EXISTS (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = gate.name AND waiting.state = 'waiting')
       OR EXISTS (SELECT 1 FROM fencerow.jobs AS holder, json_each(holder.limits) AS named
                  WHERE holder.state IN ('queued', 'running')
                    AND holder.limits IS NOT NULL
                    AND named.value = substr(gate.name, 7)))
ORDER BY gate.name
LIMIT :limit;

-- fragment: holder of a turn
-- A job that has a turn, and the worker that runs it.
SELECT json_object(
    'id', holder.id, 'queue', holder.queue, 'name', holder.name, 'state', holder.state, 'attempt', holder.attempt,
    'strict', json(CASE WHEN holder.strict THEN 'true' ELSE 'false' END), 'at_once', COALESCE(holder.exclusive_at_once, 1),
    'since_us', COALESCE(holder.turned_at, holder.claimed_at, holder.run_at), 'run_at_us', holder.run_at,
    'started_us', holder.claimed_at, 'deadline_us', holder.deadline_at,
    'worker_id', worker.id, 'worker', worker.name, 'host', worker.host, 'pid', worker.pid
)
FROM fencerow.jobs AS holder
LEFT JOIN fencerow.workers AS worker ON worker.id = holder.holder AND holder.state = 'running'

-- name: read_limit_state
-- What is remembered of this name.
SELECT state.state FROM fencerow.limit_states AS state WHERE state.name = :name;

-- name: limit_holders
-- The jobs that have the turns of a limit that jobs name, those first that have had theirs longest.
{{holder of a turn}}
WHERE holder.limits IS NOT NULL AND holder.state IN ('queued', 'running')
  AND EXISTS (SELECT 1 FROM json_each(holder.limits) AS named WHERE named.value = :name)
ORDER BY COALESCE(holder.turned_at, holder.claimed_at, holder.run_at), holder.id
LIMIT :limit;

-- name: limit_runners
-- The jobs that run, of this queue or (of none) of all, those first that have run longest.
{{holder of a turn}}
WHERE holder.state = 'running' AND (:queue = '' OR holder.queue = :queue)
ORDER BY COALESCE(holder.turned_at, holder.claimed_at, holder.run_at), holder.id
LIMIT :limit;
