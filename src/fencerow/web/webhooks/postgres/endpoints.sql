-- Endpoints: who is told of the ends of jobs over HTTP. Each change raises the version of the row.

-- fragment: columns of an endpoint
-- As `endpoint_of` reads them. No secret is among them.
CAST(endpoint.id AS text), endpoint.name, endpoint.url, CAST(endpoint.events AS text), CAST(endpoint.queues AS text),
CAST(endpoint.jobs AS text), CAST(endpoint.tags AS text), endpoint.with_result, endpoint.in_order, endpoint.timeout_s,
endpoint.attempts_max, endpoint.state, endpoint.reason, endpoint.failures, fencerow.us(endpoint.open_until),
endpoint.version, fencerow.us(endpoint.created_at), fencerow.us(endpoint.changed_at), endpoint.changed_by,
fencerow.us(endpoint.old_until), fencerow.us((SELECT fencerow.now()))

-- name: add_endpoint
-- Make an endpoint. Guard: no other has its name.
INSERT INTO fencerow.webhook_endpoints
    (id, name, url, secret, events, queues, jobs, tags, with_result, in_order, timeout_s, attempts_max, state,
     created_at, changed_at, changed_by)
SELECT CAST(:id AS uuid), CAST(:name AS text), CAST(:url AS text), CAST(:secret AS text), CAST(:events AS json),
       CAST(:queues AS json), CAST(:jobs AS json), CAST(:tags AS json), CAST(:with_result AS boolean),
       CAST(:in_order AS text), CAST(:timeout_s AS double precision), CAST(:attempts_max AS integer), 'enabled',
       clock.now, clock.now, CAST(:actor AS text)
FROM (SELECT fencerow.now() AS now) AS clock
ON CONFLICT DO NOTHING
RETURNING name;

-- name: read_endpoints
-- Endpoints by name: this one, or all.
SELECT {{columns of an endpoint}}
FROM fencerow.webhook_endpoints AS endpoint
WHERE endpoint.state <> 'removed' AND (CAST(:name AS text) IS NULL OR endpoint.name = :name)
ORDER BY endpoint.name;

-- name: read_endpoint_secrets
-- What an endpoint knows us by, the current one first. The old one counts until its time is over.
SELECT endpoint.secret,
       CASE WHEN endpoint.old_until > (SELECT fencerow.now()) THEN endpoint.old_secret END
FROM fencerow.webhook_endpoints AS endpoint
WHERE endpoint.name = :name AND endpoint.state <> 'removed';

-- name: change_endpoint
-- Change what an endpoint is. A new URL begins with a closed circuit. Guard: as it was read.
UPDATE fencerow.webhook_endpoints AS endpoint
SET url = :url, events = CAST(:events AS json), queues = CAST(:queues AS json), jobs = CAST(:jobs AS json),
    tags = CAST(:tags AS json), with_result = CAST(:with_result AS boolean), in_order = :in_order,
    timeout_s = CAST(:timeout_s AS double precision), attempts_max = CAST(:attempts_max AS integer),
    failures = CASE WHEN endpoint.url = :url THEN endpoint.failures ELSE 0 END,
    open_until = CASE WHEN endpoint.url = :url THEN endpoint.open_until END,
    version = endpoint.version + 1, changed_at = fencerow.now(), changed_by = CAST(:actor AS text)
WHERE endpoint.name = :name
  AND endpoint.state <> 'removed'
  AND endpoint.version = CAST(:version AS bigint)
RETURNING endpoint.name;

-- name: rotate_endpoint
-- Give it a new secret; the one until now signs beside it for a while. Guard: no older one does still.
UPDATE fencerow.webhook_endpoints AS endpoint
SET old_secret = endpoint.secret,
    old_until = fencerow.now() + fencerow.seconds(CAST(:overlap_s AS double precision)),
    secret = :secret, version = endpoint.version + 1, changed_at = fencerow.now(), changed_by = CAST(:actor AS text)
WHERE endpoint.name = :name
  AND endpoint.state <> 'removed'
  AND (endpoint.old_until IS NULL OR endpoint.old_until <= fencerow.now())
RETURNING endpoint.name;

-- name: retire_endpoint_secret
-- The old secret signs no more. Guard: there is one.
UPDATE fencerow.webhook_endpoints AS endpoint
SET old_secret = NULL, old_until = NULL, version = endpoint.version + 1, changed_at = fencerow.now(),
    changed_by = CAST(:actor AS text)
WHERE endpoint.name = :name AND endpoint.state <> 'removed' AND endpoint.old_secret IS NOT NULL
RETURNING endpoint.name;

-- name: enable_endpoint
-- Tell it again of what ends from now on, with a closed circuit. Guard: it is not enabled.
UPDATE fencerow.webhook_endpoints AS endpoint
SET state = 'enabled', reason = NULL, failures = 0, open_until = NULL, version = endpoint.version + 1,
    changed_at = fencerow.now(), changed_by = CAST(:actor AS text)
WHERE endpoint.name = :name AND endpoint.state IN ('disabled', 'gone')
RETURNING endpoint.name;

-- name: disable_endpoint
-- Tell it nothing more. Guard: it is enabled.
UPDATE fencerow.webhook_endpoints AS endpoint
SET state = 'disabled', reason = CAST(:reason AS text), version = endpoint.version + 1, changed_at = fencerow.now(),
    changed_by = CAST(:actor AS text)
WHERE endpoint.name = :name AND endpoint.state = 'enabled'
RETURNING endpoint.name;

-- name: remove_endpoint
-- Forget it, and its secrets at once; its deliveries go with the next purges. Guard: it is not removed.
UPDATE fencerow.webhook_endpoints AS endpoint
SET state = 'removed', secret = '', old_secret = NULL, old_until = NULL, version = endpoint.version + 1,
    changed_at = fencerow.now(), changed_by = CAST(:actor AS text)
WHERE endpoint.name = :name AND endpoint.state <> 'removed'
RETURNING endpoint.name;
