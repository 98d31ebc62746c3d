-- Deliveries of webhooks: made with the event that they tell, sent by a job each, noted with its success.
-- A job's delivery is found by the job: num_nulls() is no condition of an index, so the planner does not walk all that are open.

-- name: make_deliveries
-- What endpoints are to be told of an event, in the transaction that acknowledges it. Returns the jobs that are to be
-- submitted with them. Guard: the endpoint is enabled, and was not told of this event before: by the primary key, so
-- that of two who read the event one makes the delivery, and the other one none.
INSERT INTO fencerow.webhook_deliveries
    (endpoint_id, event_id, webhook_id, topic, ended_id, turn, body, job_id, created_at)
SELECT new.endpoint_id, new.event_id, new.webhook_id, new.topic, new.ended_id, new.turn, new.body, new.job_id, clock.now
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN json_to_recordset(CAST(:made AS json)) AS new (
    endpoint_id uuid, event_id bigint, webhook_id text, topic text, ended_id uuid, turn text, body text, job_id uuid
)
JOIN fencerow.webhook_endpoints AS endpoint ON endpoint.id = new.endpoint_id
WHERE endpoint.state = 'enabled'
ON CONFLICT DO NOTHING
RETURNING CAST(job_id AS text);

-- name: take_probe
-- The time of an open circuit is over: one delivery goes first. The others wait for so long as it may take.
-- Guard: the time is over, for this one alone.
UPDATE fencerow.webhook_endpoints AS endpoint
SET open_until = fencerow.now() + fencerow.seconds(endpoint.timeout_s + CAST(:grace_s AS double precision))
WHERE endpoint.id = (SELECT delivery.endpoint_id FROM fencerow.webhook_deliveries AS delivery
                     WHERE delivery.job_id = CAST(:job AS uuid) AND num_nulls(delivery.delivered_at) = 1)
  AND endpoint.state = 'enabled'
  AND endpoint.open_until <= fencerow.now()
RETURNING CAST(endpoint.id AS text);

-- name: read_due_delivery
-- What this job is to deliver, and where; none if another job is to do that now, or if it is done.
SELECT CAST(delivery.endpoint_id AS text), delivery.event_id, delivery.webhook_id, delivery.body, endpoint.url,
       endpoint.timeout_s, endpoint.secret,
       CASE WHEN endpoint.old_until > clock.now THEN endpoint.old_secret END,
       endpoint.state, endpoint.name, endpoint.version,
       fencerow.us(endpoint.open_until) - fencerow.us(clock.now), fencerow.us(clock.now)
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN fencerow.webhook_deliveries AS delivery
JOIN fencerow.webhook_endpoints AS endpoint ON endpoint.id = delivery.endpoint_id
WHERE delivery.job_id = CAST(:job AS uuid) AND num_nulls(delivery.delivered_at) = 1 AND endpoint.state <> 'removed';

-- name: note_delivered
-- It has arrived; the transaction is that of the job's success. Guard: this job delivers it, and nobody has said so.
UPDATE fencerow.webhook_deliveries AS delivery
SET delivered_at = fencerow.now(), attempts = delivery.attempts + 1
WHERE delivery.job_id = CAST(:job AS uuid) AND num_nulls(delivery.delivered_at) = 1
RETURNING CAST(delivery.endpoint_id AS text), delivery.event_id, delivery.attempts;

-- name: count_attempt
-- It has not arrived. Guard: this job delivers it still.
UPDATE fencerow.webhook_deliveries AS delivery
SET attempts = delivery.attempts + 1
WHERE delivery.job_id = CAST(:job AS uuid) AND num_nulls(delivery.delivered_at) = 1
RETURNING CAST(delivery.endpoint_id AS text), delivery.event_id, delivery.attempts;

-- name: note_attempt
-- What became of an attempt, for who looks.
INSERT INTO fencerow.webhook_attempts (endpoint_id, event_id, number, at, took_s, status, failure)
SELECT CAST(:endpoint AS uuid), CAST(:event AS bigint), CAST(:number AS integer), clock.now,
       CAST(:took_s AS double precision), CAST(:status AS integer), CAST(:failure AS text)
FROM (SELECT fencerow.now() AS now) AS clock
RETURNING number;

-- name: close_circuit
-- The endpoint took something. Guard: it had failed.
UPDATE fencerow.webhook_endpoints AS endpoint
SET failures = 0, open_until = NULL
WHERE endpoint.id = CAST(:endpoint AS uuid) AND (endpoint.failures > 0 OR endpoint.open_until IS NOT NULL)
RETURNING endpoint.name;

-- name: count_failure
-- One more failure in a row; from so many on the circuit is open, with each further one for twice as long.
-- Guard: it is closed, or this was the probe: what was under way when it opened says nothing new.
UPDATE fencerow.webhook_endpoints AS endpoint
SET failures = endpoint.failures + 1,
    open_until = CASE WHEN endpoint.failures + 1 >= CAST(:most AS integer)
                      THEN fencerow.now() + fencerow.seconds(LEAST(
                               CAST(:cap_s AS double precision),
                               CAST(:open_s AS double precision)
                               * power(2, LEAST(endpoint.failures + 1 - CAST(:most AS integer), 20))))
                 END
WHERE endpoint.id = CAST(:endpoint AS uuid)
  AND endpoint.state = 'enabled'
  AND (endpoint.open_until IS NULL OR CAST(:probe AS boolean))
RETURNING endpoint.failures;

-- name: note_gone
-- The endpoint answered 410: it wants nothing more. Guard: enabled, and as it was when this was sent: the answer of
-- an address that it had before says nothing about it.
UPDATE fencerow.webhook_endpoints AS endpoint
SET state = 'gone', reason = 'it answered 410', version = endpoint.version + 1, changed_at = fencerow.now(),
    changed_by = NULL
WHERE endpoint.id = CAST(:endpoint AS uuid)
  AND endpoint.state = 'enabled'
  AND endpoint.version = CAST(:version AS bigint)
RETURNING endpoint.name;

-- fragment: state of a delivery
-- Stored once: whether it arrived, and else whether a job is to deliver it.
CASE WHEN delivery.delivered_at IS NOT NULL THEN 'delivered'
     WHEN EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id) THEN 'pending'
     ELSE 'failed' END

-- fragment: deliveries that are meant
-- By their endpoint, the job whose end they tell, their webhook-id, when they were made, and their state; and perhaps
-- only those that can be redelivered: no job delivers them, and their endpoint takes them.
(CAST(:name AS text) IS NULL OR endpoint.name = :name)
  AND (CAST(:ended AS uuid) IS NULL OR delivery.ended_id = CAST(:ended AS uuid))
  AND (CAST(:webhook AS text) IS NULL OR delivery.webhook_id = :webhook)
  AND (CAST(:since AS bigint) IS NULL OR delivery.created_at >= fencerow.at(CAST(:since AS bigint)))
  AND (CAST(:until AS bigint) IS NULL OR delivery.created_at < fencerow.at(CAST(:until AS bigint)))
  AND (CAST(:before AS bigint) IS NULL OR delivery.event_id < CAST(:before AS bigint)
       OR (delivery.event_id = CAST(:before AS bigint) AND endpoint.name > CAST(:behind AS text)))
  AND (CAST(:state AS text) IS NULL OR {{state of a delivery}} = :state)
  AND (NOT CAST(:over AS boolean)
       OR (endpoint.state = 'enabled'
           AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id)))

-- name: list_newest_deliveries
-- The newest of all endpoints or of one, after the place of another delivery; with their last attempt. A page of each endpoint
-- is read in the order of the primary key, and these are merged: no index has the deliveries of all endpoints in their order.
-- (With filters that may be null the server thinks that hardly any row is meant, and reads every delivery in a plan that it
-- keeps.)
SELECT delivery.name, delivery.event_id, delivery.webhook_id, delivery.topic, CAST(delivery.ended_id AS text),
       CAST(delivery.job_id AS text), {{state of a delivery}}, fencerow.us(delivery.created_at), delivery.attempts,
       fencerow.us(delivery.delivered_at), attempt.status, attempt.failure, fencerow.us(attempt.at), attempt.took_s,
       delivery.turn, delivery.attempts_max, (SELECT fencerow.us(fencerow.now()))
FROM (SELECT endpoint.name, endpoint.attempts_max, newest.*
      FROM fencerow.webhook_endpoints AS endpoint
      CROSS JOIN LATERAL (SELECT delivery.endpoint_id, delivery.event_id, delivery.webhook_id, delivery.topic,
                                 delivery.ended_id, delivery.turn, delivery.job_id, delivery.created_at, delivery.attempts,
                                 delivery.delivered_at
                          FROM fencerow.webhook_deliveries AS delivery
                          WHERE delivery.endpoint_id = endpoint.id
                            AND delivery.event_id <= CAST(:before AS bigint)
                            AND (delivery.event_id < CAST(:before AS bigint) OR endpoint.name > CAST(:behind AS text))
                          ORDER BY delivery.event_id DESC
                          LIMIT CAST(:limit AS integer)) AS newest
      WHERE endpoint.state <> 'removed' AND (CAST(:name AS text) IS NULL OR endpoint.name = :name)
      ORDER BY newest.event_id DESC, endpoint.name
      LIMIT CAST(:limit AS integer)) AS delivery
LEFT JOIN fencerow.webhook_attempts AS attempt
       ON attempt.endpoint_id = delivery.endpoint_id AND attempt.event_id = delivery.event_id
      AND attempt.number = delivery.attempts
ORDER BY delivery.event_id DESC, delivery.name;

-- name: list_deliveries
-- The same of those that are meant.
SELECT endpoint.name, delivery.event_id, delivery.webhook_id, delivery.topic, CAST(delivery.ended_id AS text),
       CAST(delivery.job_id AS text), {{state of a delivery}}, fencerow.us(delivery.created_at), delivery.attempts,
       fencerow.us(delivery.delivered_at), attempt.status, attempt.failure, fencerow.us(attempt.at), attempt.took_s,
       delivery.turn, endpoint.attempts_max, (SELECT fencerow.us(fencerow.now()))
FROM fencerow.webhook_endpoints AS endpoint
CROSS JOIN LATERAL (SELECT delivery.*
                    FROM fencerow.webhook_deliveries AS delivery
                    WHERE delivery.endpoint_id = endpoint.id
                      AND {{deliveries that are meant}}
                    ORDER BY delivery.event_id DESC
                    LIMIT CAST(:limit AS integer)) AS delivery
LEFT JOIN fencerow.webhook_attempts AS attempt
       ON attempt.endpoint_id = delivery.endpoint_id AND attempt.event_id = delivery.event_id
      AND attempt.number = delivery.attempts
WHERE endpoint.state <> 'removed'
ORDER BY delivery.event_id DESC, endpoint.name
LIMIT CAST(:limit AS integer);

-- name: list_deliveries_of_job
-- The same of the end of one job, which has an index. (As one of several filters that may be null it reads every delivery:
-- a plan that is kept fits all values.)
SELECT endpoint.name, delivery.event_id, delivery.webhook_id, delivery.topic, CAST(delivery.ended_id AS text),
       CAST(delivery.job_id AS text), {{state of a delivery}}, fencerow.us(delivery.created_at), delivery.attempts,
       fencerow.us(delivery.delivered_at), attempt.status, attempt.failure, fencerow.us(attempt.at), attempt.took_s,
       delivery.turn, endpoint.attempts_max, (SELECT fencerow.us(fencerow.now()))
FROM fencerow.webhook_deliveries AS delivery
JOIN fencerow.webhook_endpoints AS endpoint ON endpoint.id = delivery.endpoint_id
LEFT JOIN fencerow.webhook_attempts AS attempt
       ON attempt.endpoint_id = delivery.endpoint_id AND attempt.event_id = delivery.event_id
      AND attempt.number = delivery.attempts
WHERE delivery.ended_id = CAST(:ended AS uuid)
  AND endpoint.state <> 'removed'
  AND {{deliveries that are meant}}
ORDER BY delivery.event_id DESC, endpoint.name
LIMIT CAST(:limit AS integer);

-- name: read_attempts
-- Every attempt of a delivery, in their order.
SELECT attempt.number, fencerow.us(attempt.at), attempt.took_s, attempt.status, attempt.failure
FROM fencerow.webhook_endpoints AS endpoint
JOIN fencerow.webhook_attempts AS attempt ON attempt.endpoint_id = endpoint.id
WHERE endpoint.name = :name AND endpoint.state <> 'removed' AND attempt.event_id = CAST(:event AS bigint)
ORDER BY attempt.number;

-- name: redeliver
-- Let other jobs deliver these once more, under the same webhook-id. Returns the jobs that are to be submitted for it.
-- Guard: the endpoint is enabled, no job delivers it now, and it is as it was seen: of two who ask, one makes the job.
UPDATE fencerow.webhook_deliveries AS delivery
SET job_id = again.job_id, delivered_at = NULL
FROM json_to_recordset(CAST(:again AS json)) AS again (endpoint text, event_id bigint, seen uuid, job_id uuid)
JOIN fencerow.webhook_endpoints AS endpoint ON endpoint.name = again.endpoint AND endpoint.state = 'enabled'
WHERE delivery.endpoint_id = endpoint.id
  AND delivery.event_id = again.event_id
  AND delivery.job_id = again.seen
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = delivery.job_id OFFSET 0)
RETURNING CAST(delivery.job_id AS text);
