-- Submitting: the ids come from the client, so that a submit whose answer was lost can be repeated.

-- name: submit
-- Insert new jobs from one JSON document. Whether their ends are events is decided now, by the groups there are.
-- Guard: an id that is already live is left as it is; the rows returned are those that were inserted.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now)
INSERT INTO fencerow.jobs (
    id, queue, name, priority, run_at, attempts_max, crashes_max, snoozes_max, timeout_s, expires_at,
    retention_s, scope, key, submitted_at, submitted_by, args_bytes, args, options, tags, metadata, headers,
    ephemeral, subscribed
)
SELECT
    job.id, job.queue, job.name, job.priority,
    COALESCE(fencerow.at(job.run_at_us), clock.now + fencerow.seconds(job.delay_s)),
    job.attempts_max, job.crashes_max, job.snoozes_max, job.timeout_s,
    clock.now + fencerow.seconds(job.expires_s),
    job.retention_s, job.scope, job.key, clock.now, job.submitted_by, job.args_bytes,
    CAST(job.args AS json), CAST(job.options AS json), CAST(job.tags AS json),
    CAST(job.metadata AS json), CAST(job.headers AS json), job.ephemeral,
    EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes)
FROM json_to_recordset(CAST(:jobs AS json)) AS job (
    id uuid, queue text, name text, priority smallint, delay_s double precision, run_at_us bigint,
    attempts_max integer, crashes_max integer, snoozes_max integer, timeout_s double precision,
    expires_s double precision, retention_s double precision, scope text, key text, submitted_by text,
    args_bytes integer, args text, options text, tags text, metadata text, headers text,
    ephemeral boolean
)
CROSS JOIN clock
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: withdraw
-- Take back, in the same transaction, inserted repeats of jobs that have finished meanwhile, or of ephemeral ones
-- that succeeded.
-- It is a statement of its own because the insert's snapshot may be older than the move to the finished jobs.
-- Guard: only ids that this transaction has just inserted are passed in, and only finished ones are taken.
DELETE FROM fencerow.jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state = 'queued'
  AND job.attempt = 0
  AND (EXISTS (SELECT 1 FROM fencerow.finished_jobs AS finished WHERE finished.id = job.id)
       OR EXISTS (SELECT 1 FROM fencerow.spent_ids AS spent WHERE spent.id = job.id))
RETURNING job.id;

-- name: reserve_keys
-- Take idempotency keys that nobody has. Waits for a concurrent holder to commit (then the key is its) or abort.
-- Guard: the primary key. Written in sorted order, so that two batches never wait for each other in a ring.
INSERT INTO fencerow.keys (scope, key, job_id, fingerprint, lifetime_s, created_at)
SELECT wanted.scope, wanted.key, wanted.job_id, wanted.fingerprint, wanted.lifetime_s, (SELECT fencerow.now())
FROM json_to_recordset(CAST(:keys AS json)) AS wanted (
    scope text, key text, job_id uuid, fingerprint text, lifetime_s double precision
)
ORDER BY wanted.scope COLLATE "C", wanted.key COLLATE "C"
ON CONFLICT (scope, key) DO NOTHING
RETURNING scope, key;

-- name: read_keys
-- Who owns these keys, and whether that job has ended. A statement of its own: the reserving statement's snapshot is older than the winner's commit.
SELECT owned.scope, owned.key, owned.job_id, owned.fingerprint,
       owned.expires_at IS NOT NULL AND owned.expires_at <= (SELECT fencerow.now()) AS expired,
       owned.expires_at IS NOT NULL AS ended
FROM json_to_recordset(CAST(:keys AS json)) AS wanted (scope text, key text)
JOIN fencerow.keys AS owned ON owned.scope = wanted.scope AND owned.key = wanted.key;

-- name: drop_expired_keys
-- Forget keys whose lifetime, counted from the end of their job, is over.
-- Guard: the expiry, so a key that was taken anew meanwhile stays.
DELETE FROM fencerow.keys AS owned
USING json_to_recordset(CAST(:keys AS json)) AS wanted (scope text, key text)
WHERE owned.scope = wanted.scope
  AND owned.key = wanted.key
  AND owned.expires_at <= (SELECT fencerow.now())
RETURNING owned.scope, owned.key;
