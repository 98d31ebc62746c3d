-- Submitting: the ids come from the client, so that a submit whose answer was lost can be repeated.

-- name: submit
-- Insert new jobs from one JSON document. Whether their ends are events is decided now, by the groups there are.
-- Guard: an id that is already live is left as it is; the rows returned are those that were inserted.
INSERT INTO fencerow.jobs (
    id, queue, name, priority, run_at, attempts_max, crashes_max, snoozes_max, timeout_s, expires_at,
    retention_s, scope, key, submitted_at, submitted_by, args_bytes, args, options, tags, metadata, headers,
    ephemeral, subscribed
)
SELECT
    json_extract(job.value, '$.id'), json_extract(job.value, '$.queue'), json_extract(job.value, '$.name'), json_extract(job.value, '$.priority'),
    COALESCE(json_extract(job.value, '$.run_at_us'), clock.now + CAST(json_extract(job.value, '$.delay_s') * 1000000 AS INTEGER)),
    json_extract(job.value, '$.attempts_max'), json_extract(job.value, '$.crashes_max'), json_extract(job.value, '$.snoozes_max'),
    json_extract(job.value, '$.timeout_s'), clock.now + CAST(json_extract(job.value, '$.expires_s') * 1000000 AS INTEGER),
    json_extract(job.value, '$.retention_s'), json_extract(job.value, '$.scope'), json_extract(job.value, '$.key'), clock.now,
    json_extract(job.value, '$.submitted_by'), json_extract(job.value, '$.args_bytes'), json_extract(job.value, '$.args'),
    json_extract(job.value, '$.options'), json_extract(job.value, '$.tags'), json_extract(job.value, '$.metadata'), json_extract(job.value, '$.headers'),
    json_extract(job.value, '$.ephemeral'),
    EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes = 1)
FROM json_each(:jobs) AS job CROSS JOIN (SELECT fencerow.now() AS now) AS clock
WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: withdraw
-- Take back, in the same transaction, inserted repeats of jobs that have finished meanwhile, or of ephemeral ones
-- that succeeded.
-- Guard: only ids that this transaction has just inserted are passed in, and only finished ones are taken.
DELETE FROM fencerow.jobs
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state = 'queued'
  AND attempt = 0
  AND (id IN (SELECT finished.id FROM fencerow.finished_jobs AS finished
              WHERE finished.id IN (SELECT value FROM json_each(:ids)))
       OR id IN (SELECT spent.id FROM fencerow.spent_ids AS spent
                 WHERE spent.id IN (SELECT value FROM json_each(:ids))))
RETURNING id;

-- name: reserve_keys
-- Take idempotency keys that nobody has. Guard: the primary key.
INSERT INTO fencerow.keys (scope, key, job_id, fingerprint, lifetime_s, created_at)
SELECT json_extract(wanted.value, '$.scope'), json_extract(wanted.value, '$.key'), json_extract(wanted.value, '$.job_id'),
       json_extract(wanted.value, '$.fingerprint'), json_extract(wanted.value, '$.lifetime_s'), fencerow.now()
FROM json_each(:keys) AS wanted
WHERE true
ON CONFLICT (scope, key) DO NOTHING
RETURNING scope, key;

-- name: read_keys
-- Who owns these keys, and whether that job has ended.
SELECT owned.scope, owned.key, owned.job_id, owned.fingerprint,
       owned.expires_at IS NOT NULL AND owned.expires_at <= fencerow.now() AS expired,
       owned.expires_at IS NOT NULL AS ended
FROM json_each(:keys) AS wanted
JOIN fencerow.keys AS owned
  ON owned.scope = json_extract(wanted.value, '$.scope') AND owned.key = json_extract(wanted.value, '$.key');

-- name: drop_expired_keys
-- Forget keys whose lifetime, counted from the end of their job, is over.
-- Guard: the expiry, so a key that was taken anew meanwhile stays.
DELETE FROM fencerow.keys
WHERE (scope, key) IN (SELECT json_extract(wanted.value, '$.scope'), json_extract(wanted.value, '$.key')
                       FROM json_each(:keys) AS wanted)
  AND expires_at <= fencerow.now()
RETURNING scope, key;
