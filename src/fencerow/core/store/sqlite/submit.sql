-- Submitting: the ids come from the client, so that a submit whose answer was lost can be repeated.

-- fragment: budgets in a document
-- The budgets, as `value` has them.
json_extract(value, '$.attempts_max') AS attempts_max, json_extract(value, '$.crashes_max') AS crashes_max,
json_extract(value, '$.snoozes_max') AS snoozes_max, json_extract(value, '$.timeout_s') AS timeout_s

-- fragment: jobs alike
-- What some of the jobs have in common, once for each such group; its jobs are [id, bytes, arguments] in `jobs`, or
-- [id, bytes, arguments, where it waits first, ...] where a wing says `more` of one of the group; that is how it goes on.
WITH alike AS MATERIALIZED (
    SELECT
        json_extract(value, '$.queue') AS queue, json_extract(value, '$.name') AS name, json_extract(value, '$.priority') AS priority,
        COALESCE(json_extract(value, '$.run_at_us'), clock.now + CAST(json_extract(value, '$.delay_s') * 1000000 AS INTEGER)) AS run_at,
        {{budgets in a document}},
        clock.now + CAST(json_extract(value, '$.expires_s') * 1000000 AS INTEGER) AS expires_at,
        json_extract(value, '$.retention_s') AS retention_s, json_extract(value, '$.scope') AS scope, json_extract(value, '$.key') AS key,
        clock.now AS submitted_at, json_extract(value, '$.submitted_by') AS submitted_by,
        json_extract(value, '$.options') AS options, json_extract(value, '$.tags') AS tags, json_extract(value, '$.metadata') AS metadata,
        json_extract(value, '$.headers') AS headers, json_extract(value, '$.ephemeral') AS ephemeral,
        EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes = 1) AS subscribed,
        json_extract(value, '$.more') AS more, json_extract(value, '$.jobs') AS jobs{{what a template says}}
    FROM json_each(:jobs) AS given CROSS JOIN (SELECT fencerow.now() AS now) AS clock
)

-- fragment: what jobs alike have
-- In the order of all new columns, but for the id. What wings say of no job of a group is not looked for.
alike.queue, alike.name, alike.priority, alike.run_at,
    {{alike.budgets}}, alike.expires_at, alike.retention_s, alike.scope,
    alike.key, alike.submitted_at, alike.submitted_by, json_extract(job.value, '$[1]'),
    json_extract(job.value, '$[2]'), alike.options, alike.tags, alike.metadata, alike.headers, alike.ephemeral,
    alike.subscribed,
    CASE WHEN alike.more AND json_extract(job.value, '$[3]') IS NOT NULL THEN 'waiting' ELSE 'queued' END,
    CASE WHEN alike.more THEN json_extract(job.value, '$[3]') END{{values that a submit writes}}
FROM alike CROSS JOIN json_each(alike.jobs) AS job

-- fragment: each of the jobs alike
SELECT json_extract(job.value, '$[0]'), {{what jobs alike have}}

-- fragment: each that was not repeated
SELECT
    CASE WHEN NOT EXISTS (SELECT 1 FROM fencerow.repeated_ids AS repeated WHERE repeated.id = json_extract(job.value, '$[0]'))
         THEN json_extract(job.value, '$[0]') END,
    {{what jobs alike have}}

-- name: submit
-- Insert new jobs from one JSON document: what some have in common stands once, and below it their ids, sizes and
-- arguments. Whether their ends are events is decided now, by the groups there are.
-- Guard: the primary key. Their ids are new, so none can be there; one that is fails the whole. And the look at the ids
-- that were submitted again: one that is there comes to nothing, which the table refuses to take for an id.
{{jobs alike}}
INSERT INTO fencerow.jobs ({{all new columns}})
{{each that was not repeated}};

-- name: submit_one
-- Insert one new job from parameters of its own. It waits for nobody, and of what wings say of it
-- it has only what such a job may have: `:more`.
-- Guard: the primary key and the look at what was submitted again, as in submit.
INSERT INTO fencerow.jobs ({{new columns}}{{columns of a queued submit}})
SELECT
    CASE WHEN NOT EXISTS (SELECT 1 FROM fencerow.repeated_ids AS repeated WHERE repeated.id = :id) THEN :id END,
    :queue, :name, :priority,
    COALESCE(:run_at_us, clock.now + CAST(:delay_s * 1000000 AS INTEGER)),
    :attempts_max, :crashes_max, :snoozes_max, :timeout_s, clock.now + CAST(:expires_s * 1000000 AS INTEGER),
    :retention_s, :scope, :key, clock.now, :submitted_by, :args_bytes, :args, :options, :tags, :metadata, :headers,
    :ephemeral, EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes = 1){{values of a queued submit}}
FROM (SELECT :more AS more, fencerow.now() AS now) AS clock;

-- name: resubmit
-- What submit does, for ids that may be known.
-- Guard: an id that is already live is left as it is; the rows returned are those that were inserted. Of the others
-- those that were left out are told by read_absent.
{{jobs alike}}
INSERT INTO fencerow.jobs ({{all new columns}})
{{each of the jobs alike}}
WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: read_absent
-- Of ids that were not inserted, those that are of no job: a trigger of the user's left their rows out.
SELECT wanted.value
FROM json_each(:ids) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = wanted.value)
  AND NOT EXISTS (SELECT 1 FROM fencerow.spent_ids AS spent WHERE spent.id = wanted.value);

-- name: withdraw
-- Take back, in the same transaction, inserted repeats of jobs that have finished meanwhile, or of ephemeral ones
-- that succeeded. Those of which a first submit may still be on its way are left for it to find.
-- Guard: only ids that this transaction has just inserted are passed in, and only finished ones are taken.
INSERT INTO fencerow.repeated_ids (id, at)
SELECT again.value, fencerow.now()
FROM json_each(:repeated) AS again
WHERE true
ON CONFLICT (id) DO NOTHING;
DELETE FROM fencerow.jobs
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state IN ('waiting', 'queued')
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

-- name: give_keys_back
-- Forget keys that this transaction has reserved for jobs that were there already: their lifetime is over, and no end
-- to come would start it again.
-- Guard: the job, and that no end has stamped it. Only this transaction sees the rows.
DELETE FROM fencerow.keys
WHERE (scope, key, job_id) IN (SELECT json_extract(wanted.value, '$.scope'), json_extract(wanted.value, '$.key'),
                                      json_extract(wanted.value, '$.job_id')
                               FROM json_each(:keys) AS wanted)
  AND expires_at IS NULL
RETURNING scope, key;

-- name: give_keys
-- Idempotency keys that this transaction has reserved belong to jobs that were there already. The ends of those do not
-- know of them: their lifetime counts from now.
-- Guard: the job for which the key was reserved.
UPDATE fencerow.keys
SET job_id = given.job_id,
    expires_at = fencerow.now() + CAST(lifetime_s * 1000000 AS INTEGER)
FROM (SELECT json_extract(value, '$.scope') AS scope, json_extract(value, '$.key') AS key,
             json_extract(value, '$.was') AS was, json_extract(value, '$.job_id') AS job_id
      FROM json_each(:keys)) AS given
WHERE fencerow.keys.scope = given.scope
  AND fencerow.keys.key = given.key
  AND fencerow.keys.job_id = given.was;

-- name: read_known
-- The jobs of these ids as they were submitted, live and finished: an id stands for one job. The last column is the
-- fingerprint that the first change of its arguments, or the first submit in its place, left of those before.
SELECT job.id, job.name, job.args, job.scope, job.key,
       (SELECT json_extract(note.detail, '$.args_was')
        FROM fencerow.job_events AS note
        WHERE note.job_id = job.id AND note.kind IN ('changed', 'replaced') AND json_extract(note.detail, '$.args_was') IS NOT NULL
        ORDER BY note.id
        LIMIT 1)
FROM fencerow.all_jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids));

-- name: drop_expired_keys
-- Forget keys whose lifetime, counted from the end of their job, is over.
-- Guard: the expiry, so a key that was taken anew meanwhile stays.
DELETE FROM fencerow.keys
WHERE (scope, key) IN (SELECT json_extract(wanted.value, '$.scope'), json_extract(wanted.value, '$.key')
                       FROM json_each(:keys) AS wanted)
  AND expires_at <= fencerow.now()
RETURNING scope, key;
