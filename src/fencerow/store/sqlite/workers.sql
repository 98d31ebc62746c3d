-- Worker rows: the lease of a worker is the lease of every job it holds.
-- They live in a file of their own, so that a long transaction on the jobs never delays a renewal.

-- name: ensure_workers
-- The workers' file carries no ledger: it may be lost without losing a job (see adopt).
CREATE TABLE IF NOT EXISTS fencerow.workers (
    id TEXT PRIMARY KEY NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('alive', 'retired', 'dead')),
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    info TEXT,
    lease_s REAL NOT NULL,
    registered_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    ended_at INTEGER
);

-- name: register
-- Make a worker's row. Guard: the id is fresh; ids are never used again.
INSERT INTO fencerow.workers (id, state, name, host, pid, info, lease_s, registered_at, renewed_at, lease_until)
VALUES (:holder, 'alive', :name, :host, :pid, :info, :lease_s, fencerow.now(), fencerow.now(),
        fencerow.now() + CAST(:lease_s * 1000000 AS INTEGER))
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: renew
-- Extend the lease of everything this worker holds; returns the instant from which it counts.
-- Guard: alive. No row means that others have declared it dead: it holds nothing any more.
UPDATE fencerow.workers
SET renewed_at = fencerow.now(),
    lease_until = fencerow.now() + CAST(lease_s * 1000000 AS INTEGER)
WHERE id = :holder
  AND state = 'alive'
RETURNING renewed_at;

-- name: retire
-- Say goodbye: the worker has handed back what it held. What it could not is found by the next sweep.
-- Guard: alive.
UPDATE fencerow.workers
SET state = 'retired',
    ended_at = fencerow.now()
WHERE id = :holder
  AND state = 'alive'
RETURNING id;

-- name: last_renewal
-- The last renewal that this file has.
SELECT renewed_at FROM fencerow.workers WHERE id = :holder;

-- name: server_identity
-- A file has no server and no timeline.
SELECT NULL;

-- name: describe_worker
-- Replace what a worker's row tells operators. Guard: alive.
UPDATE fencerow.workers SET info = :info
WHERE id = :holder
  AND state = 'alive'
RETURNING id;

-- name: holdings
-- What the database says this worker runs, with the fence and whether a cancel was asked.
-- Compared with what the worker knows, it finds claims whose reply was lost.
SELECT job.id, job.attempt, job.cancel_requested_at IS NOT NULL, job.cancel_requested_by
FROM fencerow.jobs AS job
WHERE job.holder = :holder
  AND job.state = 'running';

-- name: list_workers
-- Worker registrations, the newest first.
SELECT json_object(
           'id', worker.id, 'state', worker.state, 'name', worker.name, 'host', worker.host, 'pid', worker.pid,
           'info', json(worker.info), 'lease_s', worker.lease_s,
           'registered_at_us', worker.registered_at, 'renewed_at_us', worker.renewed_at,
           'lease_until_us', worker.lease_until, 'ended_at_us', worker.ended_at, 'now_us', fencerow.now()
       )
FROM fencerow.workers AS worker
WHERE :state IS NULL OR worker.state = :state
ORDER BY worker.registered_at DESC
LIMIT :limit;

-- name: forget_workers
-- Drop rows of workers that ended long ago and hold nothing.
-- Guard: not alive, ended before the age, and no running job names it.
DELETE FROM fencerow.workers
WHERE state IN ('dead', 'retired')
  AND ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
  AND id NOT IN (SELECT job.holder FROM fencerow.jobs AS job WHERE job.state = 'running' AND job.holder IS NOT NULL)
RETURNING id;
