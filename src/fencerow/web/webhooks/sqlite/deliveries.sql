-- Deliveries of webhooks: made with the event that they tell, sent by a job each, noted with its success.

-- name: make_deliveries
-- What endpoints are to be told of an event, in the transaction that acknowledges it. Returns the jobs that are to be
-- submitted with them. Guard: the endpoint is enabled, and was not told of this event before: by the primary key, so
-- that of two who read the event one makes the delivery, and the other one none.
INSERT INTO fencerow.webhook_deliveries
    (endpoint_id, event_id, webhook_id, topic, ended_id, turn, body, job_id, created_at)
SELECT new.value ->> 'endpoint_id', new.value ->> 'event_id', new.value ->> 'webhook_id', new.value ->> 'topic', new.value ->> 'ended_id', new.value ->> 'turn', new.value ->> 'body', new.value ->> 'job_id', clock.now
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN json_each(:made) AS new
JOIN fencerow.webhook_endpoints AS endpoint ON endpoint.id = new.value ->> 'endpoint_id'
WHERE endpoint.state = 'enabled'
ON CONFLICT DO NOTHING
RETURNING job_id;

-- name: take_probe
-- The time of an open circuit is over: one delivery goes first. The others wait for so long as it may take.
-- Guard: the time is over, for this one alone.
UPDATE fencerow.webhook_endpoints AS endpoint
SET open_until = fencerow.now() + CAST((endpoint.timeout_s + :grace_s) * 1000000 AS INTEGER)
WHERE endpoint.id = (SELECT delivery.endpoint_id FROM fencerow.webhook_deliveries AS delivery
                     WHERE delivery.job_id = :job AND delivery.delivered_at IS NULL)
  AND endpoint.state = 'enabled'
  AND endpoint.open_until <= fencerow.now()
RETURNING id;

-- name: read_due_delivery
-- What this job is to deliver, and where; none if another job is to do that now, or if it is done.
SELECT delivery.endpoint_id, delivery.event_id, delivery.webhook_id, delivery.body, endpoint.url,
       endpoint.timeout_s, endpoint.secret,
       CASE WHEN endpoint.old_until > clock.now THEN endpoint.old_secret END,
       endpoint.state, endpoint.name, endpoint.version,
       endpoint.open_until - clock.now, clock.now
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN fencerow.webhook_deliveries AS delivery
JOIN fencerow.webhook_endpoints AS endpoint ON endpoint.id = delivery.endpoint_id
WHERE delivery.job_id = :job AND delivery.delivered_at IS NULL AND endpoint.state <> 'removed';

-- name: note_delivered
-- It has arrived; the transaction is that of the job's success. Guard: this job delivers it, and nobody has said so.
UPDATE fencerow.webhook_deliveries AS delivery
SET delivered_at = fencerow.now(), attempts = delivery.attempts + 1
WHERE delivery.job_id = :job AND delivery.delivered_at IS NULL
RETURNING endpoint_id, event_id, attempts;

-- name: count_attempt
-- It has not arrived. Guard: this job delivers it still.
UPDATE fencerow.webhook_deliveries AS delivery
SET attempts = delivery.attempts + 1
WHERE delivery.job_id = :job AND delivery.delivered_at IS NULL
RETURNING endpoint_id, event_id, attempts;

-- name: note_attempt
-- What became of an attempt, for who looks.
INSERT INTO fencerow.webhook_attempts (endpoint_id, event_id, number, at, took_s, status, failure)
SELECT :endpoint, :event, :number, clock.now,
       :took_s, :status, :failure
FROM (SELECT fencerow.now() AS now) AS clock
RETURNING number;

-- name: close_circuit
-- The endpoint took something. Guard: it had failed.
UPDATE fencerow.webhook_endpoints AS endpoint
SET failures = 0, open_until = NULL
WHERE endpoint.id = :endpoint AND (endpoint.failures > 0 OR endpoint.open_until IS NOT NULL)
RETURNING name;

-- name: count_failure
-- One more failure in a row; from so many on the circuit is open, with each further one for twice as long.
-- Guard: it is closed, or this was the probe: what was under way when it opened says nothing new.
UPDATE fencerow.webhook_endpoints AS endpoint
SET failures = endpoint.failures + 1,
    open_until = CASE WHEN endpoint.failures + 1 >= :most
                      THEN fencerow.now() + CAST(1000000 * min(
                               :cap_s, :open_s * (1 << min(endpoint.failures + 1 - :most, 20))) AS INTEGER)
                 END
WHERE endpoint.id = :endpoint
  AND endpoint.state = 'enabled'
  AND (endpoint.open_until IS NULL OR :probe)
RETURNING failures;

-- name: note_gone
-- The endpoint answered 410: it wants nothing more. Guard: enabled, and as it was when this was sent: the answer of
-- an address that it had before says nothing about it.
UPDATE fencerow.webhook_endpoints AS endpoint
SET state = 'gone', reason = 'it answered 410', version = endpoint.version + 1, changed_at = fencerow.now(),
    changed_by = NULL
WHERE endpoint.id = :endpoint
  AND endpoint.state = 'enabled'
  AND endpoint.version = :version
RETURNING name;

-- fragment: state of a delivery
-- Stored once: whether it arrived, and else whether a job is to deliver it.
CASE WHEN delivery.delivered_at IS NOT NULL THEN 'delivered'
     WHEN EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id) THEN 'pending'
     ELSE 'failed' END

-- fragment: deliveries that are meant
-- By their endpoint, the job whose end they tell, their webhook-id, when they were made, and their state; and perhaps
-- only those that can be redelivered: no job delivers them, and their endpoint takes them.
(:name IS NULL OR endpoint.name = :name)
  AND (:ended IS NULL OR delivery.ended_id = :ended)
  AND (:webhook IS NULL OR delivery.webhook_id = :webhook)
  AND (:since IS NULL OR delivery.created_at >= :since)
  AND (:until IS NULL OR delivery.created_at < :until)
  AND (:before IS NULL OR delivery.event_id < :before
       OR (delivery.event_id = :before AND endpoint.name > :behind))
  AND (:state IS NULL OR {{state of a delivery}} = :state)
  AND (NOT :over
       OR (endpoint.state = 'enabled'
           AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id)))

-- name: list_newest_deliveries
-- The newest of all endpoints or of one, after the place of another delivery; with their last attempt.
SELECT endpoint.name, delivery.event_id, delivery.webhook_id, delivery.topic, delivery.ended_id,
       delivery.job_id, {{state of a delivery}}, delivery.created_at, delivery.attempts,
       delivery.delivered_at, attempt.status, attempt.failure, attempt.at, attempt.took_s,
       delivery.turn, endpoint.attempts_max, fencerow.now()
FROM fencerow.webhook_endpoints AS endpoint
JOIN fencerow.webhook_deliveries AS delivery ON delivery.endpoint_id = endpoint.id
LEFT JOIN fencerow.webhook_attempts AS attempt
       ON attempt.endpoint_id = delivery.endpoint_id AND attempt.event_id = delivery.event_id
      AND attempt.number = delivery.attempts
WHERE endpoint.state <> 'removed'
  AND (:name IS NULL OR endpoint.name = :name)
  AND delivery.event_id <= :before
  AND (delivery.event_id < :before OR endpoint.name > :behind)
ORDER BY delivery.event_id DESC, endpoint.name
LIMIT :limit;

-- name: list_deliveries
-- Deliveries, the newest first, after the place of another one; with their last attempt.
SELECT endpoint.name, delivery.event_id, delivery.webhook_id, delivery.topic, delivery.ended_id,
       delivery.job_id, {{state of a delivery}}, delivery.created_at, delivery.attempts,
       delivery.delivered_at, attempt.status, attempt.failure, attempt.at, attempt.took_s,
       delivery.turn, endpoint.attempts_max, fencerow.now()
FROM fencerow.webhook_endpoints AS endpoint
JOIN fencerow.webhook_deliveries AS delivery ON delivery.endpoint_id = endpoint.id
LEFT JOIN fencerow.webhook_attempts AS attempt
       ON attempt.endpoint_id = delivery.endpoint_id AND attempt.event_id = delivery.event_id
      AND attempt.number = delivery.attempts
WHERE endpoint.state <> 'removed'
  AND {{deliveries that are meant}}
ORDER BY delivery.event_id DESC, endpoint.name
LIMIT :limit;

-- name: list_deliveries_of_job
-- The same of the end of one job, which has an index.
SELECT endpoint.name, delivery.event_id, delivery.webhook_id, delivery.topic, delivery.ended_id,
       delivery.job_id, {{state of a delivery}}, delivery.created_at, delivery.attempts,
       delivery.delivered_at, attempt.status, attempt.failure, attempt.at, attempt.took_s,
       delivery.turn, endpoint.attempts_max, fencerow.now()
FROM fencerow.webhook_deliveries AS delivery
JOIN fencerow.webhook_endpoints AS endpoint ON endpoint.id = delivery.endpoint_id
LEFT JOIN fencerow.webhook_attempts AS attempt
       ON attempt.endpoint_id = delivery.endpoint_id AND attempt.event_id = delivery.event_id
      AND attempt.number = delivery.attempts
WHERE delivery.ended_id = :ended
  AND endpoint.state <> 'removed'
  AND {{deliveries that are meant}}
ORDER BY delivery.event_id DESC, endpoint.name
LIMIT :limit;

-- name: read_attempts
-- Every attempt of a delivery, in their order.
SELECT attempt.number, attempt.at, attempt.took_s, attempt.status, attempt.failure
FROM fencerow.webhook_endpoints AS endpoint
JOIN fencerow.webhook_attempts AS attempt ON attempt.endpoint_id = endpoint.id
WHERE endpoint.name = :name AND endpoint.state <> 'removed' AND attempt.event_id = :event
ORDER BY attempt.number;

-- name: redeliver
-- Let other jobs deliver these once more, under the same webhook-id. Returns the jobs that are to be submitted for it.
-- Guard: the endpoint is enabled, no job delivers it now, and it is as it was seen: of two who ask, one makes the job.
UPDATE fencerow.webhook_deliveries AS delivery
SET job_id = again.value ->> 'job_id', delivered_at = NULL
FROM json_each(:again) AS again
JOIN fencerow.webhook_endpoints AS endpoint
  ON endpoint.name = again.value ->> 'endpoint' AND endpoint.state = 'enabled'
WHERE delivery.endpoint_id = endpoint.id
  AND delivery.event_id = again.value ->> 'event_id'
  AND delivery.job_id = again.value ->> 'seen'
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id)
RETURNING job_id;
