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
VALUES (:name, '{}', (SELECT fencerow.now()))
ON CONFLICT (name) DO NOTHING
RETURNING name;

-- name: forget_limit_state
-- Remove what is remembered of the limit of a queue, or of all.
DELETE FROM fencerow.limit_states AS state
WHERE state.name = :name
RETURNING state.name;

-- name: forget_named_limit
-- Remove what is remembered of a limit that jobs name, and of all its keys.
DELETE FROM fencerow.limit_states AS state
WHERE state.name = :name OR starts_with(state.name, :name || '/')
RETURNING state.name;

-- name: arrive_at_limit
-- Say that there may be room at the gates of a limit that jobs name.
INSERT INTO fencerow.gate_arrivals (gate)
SELECT gate.name
FROM fencerow.gates AS gate
WHERE gate.name = 'limit:' || :name OR starts_with(gate.name, 'limit:' || :name || '/');

-- name: is_limited
-- Whether claims from this queue look at its limit already.
SELECT EXISTS (SELECT 1 FROM fencerow.queues AS known WHERE known.name = :queue AND known.limited);

-- name: wait_briefly
-- Until this transaction ends, wait for no lock longer than this: all claims wait behind the next statement.
SELECT set_config('lock_timeout', '500ms', true);

-- name: lock_claims
-- Wait until all claims have ended that are under way, and keep others from beginning until this transaction ends. Each holds
-- ROW SHARE of one of these tables, since before its snapshot: plainly of the queues, under a limit of both, in this order.
-- Looks, and a dump, hold less, and wait for nothing.
LOCK TABLE fencerow.limit_states, fencerow.queues IN EXCLUSIVE MODE;

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

-- name: fates_of
-- What became of jobs that got a turn, and when they started with it, if they did. An ephemeral job that succeeded has left
-- its id; it started before it ended. A job that is live again is told as live.
SELECT CAST(job.id AS text), job.state,
       CASE WHEN job.claimed_at >= COALESCE(job.turned_at, job.claimed_at) THEN fencerow.us(job.claimed_at) END
FROM fencerow.all_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
UNION ALL
SELECT CAST(spent.id AS text), 'succeeded', fencerow.us(spent.ended_at)
FROM fencerow.spent_ids AS spent
WHERE spent.id = ANY(CAST(:ids AS uuid[]));

-- name: take_failures
-- Take what was told of failures under these limits, whose rows or gates are locked by this transaction. What is taken comes
-- back if it does not commit.
DELETE FROM fencerow.limit_failures AS failure
WHERE failure.name = ANY(CAST(:names AS text[]))
RETURNING failure.name, fencerow.us(failure.at), fencerow.us(COALESCE(failure.started_at, failure.at));

-- name: watch_failures
-- From the commit on, failures under this limit are told. Guard: none; whoever was first was enough.
INSERT INTO fencerow.watched_limits (name)
VALUES (:name)
ON CONFLICT (name) DO NOTHING;

-- name: ignore_failures
-- Failures under this limit, and of its keys, are told no more, and those that were are forgotten.
WITH known AS (
    DELETE FROM fencerow.watched_limits AS watched
    WHERE watched.name = :name
    RETURNING watched.name
)
DELETE FROM fencerow.limit_failures AS failure
USING known
WHERE failure.name = known.name OR starts_with(failure.name, known.name || '/');

-- name: keep_limits
-- Keep these limits from being changed until the transaction ends, in a sorted order. An advisory lock, not the rows: whoever
-- comes later waits behind a change that waits. Of a row, others would go on sharing it, and the change would never come.
SELECT pg_advisory_xact_lock_shared(each.lock)
FROM (SELECT wanted.lock FROM unnest(CAST(:locks AS bigint[])) AS wanted (lock) ORDER BY wanted.lock OFFSET 0) AS each;

-- name: read_named_limits
-- What is said of these limits, and what is remembered of each. Nobody changes them by now: a statement of its own after the
-- wait for that. The gates are locked before, and who writes a state holds its gate: so what is read of it here is
-- what the last one wrote.
SELECT wanted.name, known.name, known.definition, state.state, fencerow.us(fencerow.now())
FROM unnest(CAST(:names AS text[])) AS wanted (name)
JOIN fencerow.limits AS known ON known.name IN (wanted.name, split_part(wanted.name, '/', 1))
LEFT JOIN fencerow.limit_states AS state ON state.name = wanted.name
ORDER BY known.name COLLATE "C", wanted.name;

-- name: defined_limits
-- Those of these limits that are defined, and those of which they may be keys.
SELECT known.name, known.definition
FROM fencerow.limits AS known
WHERE known.name = ANY(CAST(:names AS text[]))
   OR known.name = ANY(ARRAY(SELECT split_part(wanted.name, '/', 1)
                             FROM unnest(CAST(:names AS text[])) AS wanted (name)));

-- name: keep_limit_state
-- Keep what is remembered of a limit that jobs name after starts. Its gate is locked by this transaction.
INSERT INTO fencerow.limit_states AS known (name, state, changed_at)
VALUES (:name, :state, (SELECT fencerow.now()))
ON CONFLICT (name) DO UPDATE
SET state = EXCLUDED.state, changed_at = EXCLUDED.changed_at
RETURNING known.name;

-- name: limit_states_after
-- What is remembered of keys under limits, in the order of the names, and since how long it is so. What is remembered of
-- queues and of the fleet stays: claims lock those rows.
SELECT state.name, state.state, fencerow.us(fencerow.now()) - fencerow.us(state.changed_at), fencerow.us(fencerow.now())
FROM fencerow.limit_states AS state
WHERE state.name > :after
  AND strpos(state.name, '/') > 0
  AND NOT starts_with(state.name, 'queue:')
ORDER BY state.name
LIMIT CAST(:limit AS integer);

-- name: forget_limit_states
-- Forget what is remembered of these keys. Guard: it is what was judged; who started under it meanwhile has changed it.
DELETE FROM fencerow.limit_states AS known
USING json_array_elements(CAST(:states AS json)) AS idle (pair)
WHERE known.name = idle.pair ->> 0
  AND known.state = idle.pair ->> 1
RETURNING known.name;

-- fragment: names this limit
-- It names asked.name: an index has the first limit of each job, one the second, and one those behind it.
(holder.limits[1] = asked.name
 OR holder.limits[2] = asked.name
 OR holder.limits[3] IS NOT NULL AND holder.limits[3:] @> ARRAY[asked.name])

-- name: undefined_limits
-- Limits that live jobs name and nobody has defined, as far as their gates are known: each such job came to one.
SELECT substr(gate.name, 7)
FROM fencerow.gates AS gate
WHERE starts_with(gate.name, 'limit:')
  AND NOT EXISTS (SELECT 1 FROM fencerow.limits AS known
                  WHERE known.name IN (substr(gate.name, 7), split_part(substr(gate.name, 7), '/', 1)))
  AND (EXISTS (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = gate.name AND waiting.state = 'waiting')
       OR EXISTS (SELECT 1
                  FROM fencerow.jobs AS holder, LATERAL (SELECT substr(gate.name, 7) AS name) AS asked
                  WHERE {{names this limit}} AND holder.state IN ('queued', 'running')))
ORDER BY gate.name
LIMIT CAST(:limit AS integer);

-- fragment: holder of a turn
-- A job that has a turn, and the worker that runs it.
SELECT CAST(json_build_object(
    'id', holder.id, 'queue', holder.queue, 'name', holder.name, 'state', holder.state, 'attempt', holder.attempt,
    'strict', holder.strict, 'at_once', COALESCE(holder.exclusive_at_once, 1), 'since_us',
    fencerow.us(COALESCE(holder.turned_at, holder.claimed_at, holder.run_at)), 'run_at_us', fencerow.us(holder.run_at),
    'started_us', fencerow.us(holder.claimed_at), 'deadline_us', fencerow.us(holder.deadline_at),
    'worker_id', worker.id, 'worker', worker.name, 'host', worker.host, 'pid', worker.pid
) AS text)
FROM fencerow.jobs AS holder
LEFT JOIN fencerow.workers AS worker ON worker.id = holder.holder AND holder.state = 'running'

-- name: read_limit_state
-- What is remembered of this name.
SELECT state.state FROM fencerow.limit_states AS state WHERE state.name = :name;

-- name: limit_holders
-- The jobs that have the turns of a limit that jobs name, those first that have had theirs longest.
{{holder of a turn}}
CROSS JOIN (SELECT CAST(:name AS text) AS name) AS asked
WHERE {{names this limit}} AND holder.state IN ('queued', 'running')
ORDER BY COALESCE(holder.turned_at, holder.claimed_at, holder.run_at), holder.id
LIMIT CAST(:limit AS integer);

-- name: limit_runners
-- The jobs that run, of this queue or (of none) of all, those first that have run longest.
{{holder of a turn}}
WHERE holder.state = 'running' AND CAST(:queue AS text) IN ('', holder.queue)
ORDER BY COALESCE(holder.turned_at, holder.claimed_at, holder.run_at), holder.id
LIMIT CAST(:limit AS integer);
