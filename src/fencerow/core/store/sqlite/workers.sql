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
    ended_at INTEGER,
    stated TEXT,
    wanted TEXT,
    wanted_version INTEGER NOT NULL DEFAULT 0,
    wanted_at INTEGER,
    wanted_by TEXT,
    wanted_reason TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(name), typeof(host), typeof(info), typeof(stated),
        typeof(wanted), typeof(wanted_by), typeof(wanted_reason)))
);

-- name: register
-- Make a worker's row. A process that was declared dead registers anew and takes along what was wanted of it.
-- Guard: the id is fresh; ids are never used again.
INSERT INTO fencerow.workers (id, state, name, host, pid, info, lease_s, registered_at, renewed_at, lease_until,
                              stated, wanted_version, wanted, wanted_at, wanted_by, wanted_reason)
SELECT :holder, 'alive', :name, :host, :pid, :info, :lease_s, fencerow.now(), fencerow.now(),
       fencerow.now() + CAST(:lease_s * 1000000 AS INTEGER),
       :stated, coalesce(former.wanted_version, 0), former.wanted, former.wanted_at, former.wanted_by,
       former.wanted_reason
FROM (SELECT 1) AS one
LEFT JOIN fencerow.workers AS former ON former.id = :former
WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: renew
-- Extend the lease of everything this worker holds, note what it does now, and say what is wanted of it.
-- Guard: alive. No row means that others have declared it dead: it holds nothing any more.
UPDATE fencerow.workers
SET renewed_at = fencerow.now(),
    lease_until = fencerow.now() + CAST(lease_s * 1000000 AS INTEGER),
    stated = coalesce(:stated, stated)
WHERE id = :holder
  AND state = 'alive'
RETURNING wanted_version, wanted, renewed_at;

-- name: order_worker
-- Write down what an operator wants of a worker, as a whole. It is carried out at the worker's next renewal.
-- Guard: alive, able to be changed, and still at the version that the operator saw: of two orders at once one wins.
UPDATE fencerow.workers
SET wanted_version = wanted_version + 1,
    wanted = :wanted,
    wanted_at = fencerow.now(),
    wanted_by = :actor,
    wanted_reason = :reason
WHERE id = :holder
  AND state = 'alive'
  AND stated IS NOT NULL
  AND wanted_version = :version
RETURNING wanted_version;

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
-- Worker registrations, the newest first. What a row says that is no JSON any more shows as null; it hides no other.
SELECT json_object(
           'id', worker.id, 'state', worker.state, 'name', worker.name, 'host', worker.host, 'pid', worker.pid,
           'info', CASE WHEN json_valid(worker.info) THEN json(worker.info) END, 'lease_s', worker.lease_s,
           'registered_at_us', worker.registered_at, 'renewed_at_us', worker.renewed_at,
           'lease_until_us', worker.lease_until, 'ended_at_us', worker.ended_at,
           'stated', CASE WHEN json_valid(worker.stated) THEN json(worker.stated) END,
           'wanted', CASE WHEN json_valid(worker.wanted) THEN json(worker.wanted) END, 'wanted_version', worker.wanted_version,
           'wanted_at_us', worker.wanted_at, 'wanted_by', worker.wanted_by,
           'wanted_reason', worker.wanted_reason, 'now_us', fencerow.now()
       )
FROM fencerow.workers AS worker
WHERE (:state IS NULL OR worker.state = :state)
  AND (:holder IS NULL OR worker.id = :holder)
ORDER BY worker.registered_at DESC
LIMIT :limit;

-- name: unaware_workers
-- Living workers whose row does not say that they know this rule. One that is silent counts until its lease ends.
SELECT worker.name, CASE WHEN json_valid(worker.info) THEN json_extract(worker.info, '$.version') END
FROM fencerow.workers AS worker
WHERE worker.state = 'alive'
  AND worker.lease_until > fencerow.now()
  AND NOT EXISTS (SELECT 1
                  FROM json_each(CASE WHEN json_valid(worker.info) AND json_type(worker.info, '$.rules') = 'array'
                                      THEN json_extract(worker.info, '$.rules') ELSE '[]' END) AS known
                  WHERE known.value = :rule)
ORDER BY worker.registered_at
LIMIT 100;
