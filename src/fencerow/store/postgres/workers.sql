-- Worker rows: the lease of a worker is the lease of every job it holds.

-- name: register
-- Make a worker's row. Guard: the id is fresh; ids are never used again.
INSERT INTO fencerow.workers (id, state, name, host, pid, info, lease_s, registered_at, renewed_at, lease_until)
SELECT CAST(:holder AS uuid), 'alive', :name, :host, CAST(:pid AS bigint), CAST(:info AS json),
       CAST(:lease_s AS double precision), clock.now, clock.now,
       clock.now + fencerow.seconds(CAST(:lease_s AS double precision))
FROM (SELECT fencerow.now() AS now) AS clock
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: renew
-- Extend the lease of everything this worker holds; returns the instant from which it counts.
-- Guard: alive. No row means that others have declared it dead: it holds nothing any more.
UPDATE fencerow.workers AS worker
SET renewed_at = clock.now,
    lease_until = clock.now + fencerow.seconds(worker.lease_s)
FROM (SELECT fencerow.now() AS now) AS clock
WHERE worker.id = CAST(:holder AS uuid)
  AND worker.state = 'alive'
RETURNING fencerow.us(worker.renewed_at);

-- name: retire
-- Say goodbye: the worker has handed back what it held. What it could not is found by the next sweep.
-- Guard: alive.
UPDATE fencerow.workers AS worker
SET state = 'retired',
    ended_at = (SELECT fencerow.now())
WHERE worker.id = CAST(:holder AS uuid)
  AND worker.state = 'alive'
RETURNING worker.id;

-- name: last_renewal
-- The last renewal that this database has: after a failover or a restore it may have lost some.
SELECT fencerow.us(worker.renewed_at)
FROM fencerow.workers AS worker
WHERE worker.id = CAST(:holder AS uuid);

-- name: server_identity
-- The cluster's own number and the timeline on which it writes. Any role may ask, on a primary.
SELECT concat(control.system_identifier, '/', ltrim(left(pg_walfile_name(pg_current_wal_lsn()), 8), '0'))
FROM pg_control_system() AS control;

-- name: describe_worker
-- Replace what a worker's row tells operators. Guard: alive.
UPDATE fencerow.workers AS worker
SET info = CAST(:info AS json)
WHERE worker.id = CAST(:holder AS uuid)
  AND worker.state = 'alive'
RETURNING worker.id;

-- name: holdings
-- What the database says this worker runs, with the fence and whether a cancel was asked.
-- Compared with what the worker knows, it finds claims whose reply was lost.
SELECT job.id, job.attempt, job.cancel_requested_at IS NOT NULL, job.cancel_requested_by
FROM fencerow.jobs AS job
WHERE job.holder = CAST(:holder AS uuid)
  AND job.state = 'running';

-- name: list_workers
-- Worker registrations, the newest first.
SELECT CAST(json_build_object(
           'id', worker.id, 'state', worker.state, 'name', worker.name, 'host', worker.host, 'pid', worker.pid,
           'info', worker.info, 'lease_s', worker.lease_s,
           'registered_at_us', fencerow.us(worker.registered_at), 'renewed_at_us', fencerow.us(worker.renewed_at),
           'lease_until_us', fencerow.us(worker.lease_until), 'ended_at_us', fencerow.us(worker.ended_at),
           'now_us', fencerow.us(fencerow.now())
       ) AS text)
FROM fencerow.workers AS worker
WHERE CAST(:state AS text) IS NULL OR worker.state = :state
ORDER BY worker.registered_at DESC
LIMIT CAST(:limit AS integer);

-- name: forget_workers
-- Drop rows of workers that ended long ago and hold nothing.
-- Guard: not alive, ended before the age, and no running job names it. A slow claim under a dropped id is adopted.
DELETE FROM fencerow.workers AS worker
WHERE worker.state IN ('dead', 'retired')
  AND worker.ended_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.holder = worker.id AND job.state = 'running')
RETURNING worker.id;
