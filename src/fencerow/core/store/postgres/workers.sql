-- Worker rows: the lease of a worker is the lease of every job it holds.

-- name: register
-- Make a worker's row. A process that was declared dead registers anew and takes along what was wanted of it.
-- Guard: the id is fresh; ids are never used again.
INSERT INTO fencerow.workers (id, state, name, host, pid, info, lease_s, registered_at, renewed_at, lease_until,
                              stated, wanted_version, wanted, wanted_at, wanted_by, wanted_reason)
SELECT CAST(:holder AS uuid), 'alive', :name, :host, CAST(:pid AS bigint), CAST(:info AS json),
       CAST(:lease_s AS double precision), clock.now, clock.now,
       clock.now + fencerow.seconds(CAST(:lease_s AS double precision)),
       CAST(:stated AS json), coalesce(former.wanted_version, 0), former.wanted, former.wanted_at,
       former.wanted_by, former.wanted_reason
FROM (SELECT fencerow.now() AS now) AS clock
LEFT JOIN fencerow.workers AS former ON former.id = CAST(:former AS uuid)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: renew
-- Extend the lease of everything this worker holds, note what it does now, and say what is wanted of it.
-- Guard: alive. No row means that others have declared it dead: it holds nothing any more.
UPDATE fencerow.workers AS worker
SET renewed_at = clock.now,
    lease_until = clock.now + fencerow.seconds(worker.lease_s),
    stated = coalesce(CAST(:stated AS json), worker.stated)
FROM (SELECT fencerow.now() AS now) AS clock
WHERE worker.id = CAST(:holder AS uuid)
  AND worker.state = 'alive'
RETURNING worker.wanted_version, CAST(worker.wanted AS text), fencerow.us(worker.renewed_at);

-- name: order_worker
-- Write down what an operator wants of a worker, as a whole. It is carried out at the worker's next renewal.
-- Guard: alive, able to be changed, and still at the version that the operator saw: of two orders at once one wins.
UPDATE fencerow.workers AS worker
SET wanted_version = worker.wanted_version + 1,
    wanted = CAST(:wanted AS json),
    wanted_at = (SELECT fencerow.now()),
    wanted_by = CAST(:actor AS text),
    wanted_reason = CAST(:reason AS text)
WHERE worker.id = CAST(:holder AS uuid)
  AND worker.state = 'alive'
  AND worker.stated IS NOT NULL
  AND worker.wanted_version = CAST(:version AS bigint)
RETURNING worker.wanted_version;

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
           'stated', worker.stated, 'wanted', worker.wanted, 'wanted_version', worker.wanted_version,
           'wanted_at_us', fencerow.us(worker.wanted_at), 'wanted_by', worker.wanted_by,
           'wanted_reason', worker.wanted_reason, 'now_us', fencerow.us(fencerow.now())
       ) AS text)
FROM fencerow.workers AS worker
WHERE (CAST(:state AS text) IS NULL OR worker.state = :state)
  AND (CAST(:holder AS uuid) IS NULL OR worker.id = CAST(:holder AS uuid))
ORDER BY worker.registered_at DESC
LIMIT CAST(:limit AS integer);

-- name: unaware_workers
-- Living workers whose row does not say that they know this rule. One that is silent counts until its lease ends.
SELECT worker.name, worker.info ->> 'version'
FROM fencerow.workers AS worker
WHERE worker.state = 'alive'
  AND worker.lease_until > (SELECT fencerow.now())
  AND NOT EXISTS (SELECT 1
                  FROM json_array_elements_text(CASE WHEN json_typeof(worker.info -> 'rules') = 'array'
                                                     THEN worker.info -> 'rules' ELSE '[]' END) AS known (rule)
                  WHERE known.rule = :rule)
ORDER BY worker.registered_at
LIMIT 100;
