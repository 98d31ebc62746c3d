-- Submitting: the ids come from the client, so that a submit whose answer was lost can be repeated.

-- fragment: budgets with types
-- The budgets where a document is read.
attempts_max integer, crashes_max integer, snoozes_max integer, timeout_s double precision

-- fragment: jobs alike
-- What some of the jobs have in common, once for each such group; its jobs are [id, bytes, arguments] in `jobs`, or
-- [id, bytes, arguments, where it waits first, ...] where a wing says `more` of one of the group; that is how it goes on.
WITH alike AS MATERIALIZED (
    SELECT
        given.queue, given.name, given.priority,
        COALESCE(fencerow.at(given.run_at_us), clock.now + fencerow.seconds(given.delay_s)) AS run_at,
        {{given.budgets}},
        clock.now + fencerow.seconds(given.expires_s) AS expires_at,
        given.retention_s, given.scope, given.key, clock.now AS submitted_at, given.submitted_by,
        CAST(given.options AS json) AS options, CAST(given.tags AS json) AS tags,
        CAST(given.metadata AS json) AS metadata, CAST(given.headers AS json) AS headers, given.ephemeral,
        EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes) AS subscribed,
        given.more, given.jobs{{what a template says}}
    FROM json_to_recordset(CAST(:jobs AS json)) AS given (
        queue text, name text, priority smallint, delay_s double precision, run_at_us bigint,
        {{budgets with types}},
        expires_s double precision, retention_s double precision, scope text, key text, submitted_by text,
        options text, tags text, metadata text, headers text, ephemeral boolean,
        more boolean, jobs json{{fields of a template}}
    )
    CROSS JOIN (SELECT fencerow.now() AS now) AS clock
)

-- fragment: each of the jobs alike
-- In the order of all new columns. What wings say of no job of a group is not looked for.
SELECT
    CAST(job.value ->> 0 AS uuid), alike.queue, alike.name, alike.priority, alike.run_at,
    {{alike.budgets}}, alike.expires_at, alike.retention_s, alike.scope,
    alike.key, alike.submitted_at, alike.submitted_by, CAST(job.value ->> 1 AS integer),
    CAST(job.value ->> 2 AS json), alike.options, alike.tags, alike.metadata, alike.headers, alike.ephemeral,
    alike.subscribed,
    CASE WHEN alike.more AND job.value ->> 3 IS NOT NULL THEN 'waiting' ELSE 'queued' END,
    CASE WHEN alike.more THEN job.value ->> 3 END{{values that a submit writes}}
FROM alike CROSS JOIN LATERAL json_array_elements(alike.jobs) AS job (value)

-- fragment: none came again
-- Whether nothing was submitted again of late, so that no first submit can have come after its repeat. A sequence has one
-- value for all, which is no part of the snapshot: whoever has committed a repeat before this moment has set it before.
-- What is not known is false or null, and then the submit looks. A role that may not read it is asked first: PostgreSQL 15 and 16
-- refuse the statement, where later ones answer null.
CASE WHEN has_sequence_privilege(CAST($$fencerow.repeats_until$$ AS regclass), 'SELECT')
     THEN to_timestamp(pg_sequence_last_value(CAST($$fencerow.repeats_until$$ AS regclass))) < fencerow.now() END

-- name: submit
-- Insert new jobs from one JSON document: what some have in common stands once, and below it their ids, sizes and
-- arguments. Whether their ends are events is decided now, by the groups there are.
-- Guard: the primary key. Their ids are new, so none can be there; one that is fails the whole. And the look, when all
-- are in, at the ids that were submitted again: one of these has come too late, and fails the whole as well. So does one
-- that a trigger of the user's left out: fewer are in than were given.
{{jobs alike}},
inserted AS (
INSERT INTO fencerow.jobs ({{all new columns}})
{{each of the jobs alike}}
RETURNING id
)
SELECT CASE WHEN count(*) < CAST(:count AS integer) THEN fencerow.refuse_left_out()
            WHEN {{none came again}} THEN true ELSE fencerow.refuse_repeated(array_agg(inserted.id)) END FROM inserted;

-- fragment: said once
-- What all jobs of a submit have in common, from parameters of its own: the columns between id and size.
CAST(:queue AS text), CAST(:name AS text), CAST(:priority AS smallint),
COALESCE(
    TIMESTAMPTZ '1970-01-01 00:00:00+00' + CAST(:run_at_us AS bigint) * INTERVAL '1 microsecond',
    clock.now + CAST(:delay_s AS double precision) * INTERVAL '1 second'
),
CAST(:attempts_max AS integer), CAST(:crashes_max AS integer), CAST(:snoozes_max AS integer),
CAST(:timeout_s AS double precision), clock.now + CAST(:expires_s AS double precision) * INTERVAL '1 second',
CAST(:retention_s AS double precision), CAST(:scope AS text), CAST(:key AS text), clock.now,
CAST(:submitted_by AS text)

-- fragment: said once of labels
-- The same, the columns behind the arguments.
CAST(:options AS json), CAST(:tags AS json), CAST(:metadata AS json), CAST(:headers AS json),
CAST(:ephemeral AS boolean), EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes)

-- name: submit_alike
-- Insert several new jobs of one template: what they have in common as parameters, the rest as one array for each column.
-- The server reads arrays in three quarters of the time that a document of the same jobs takes. Wings say nothing of them.
-- Guard: the primary key, the count and the look at what was submitted again, as in submit.
WITH inserted AS (
INSERT INTO fencerow.jobs ({{new columns}})
SELECT job.id, {{said once}}, job.args_bytes, job.args, {{said once of labels}}
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN unnest(
    CAST(:ids AS uuid[]), CAST(:sizes AS integer[]), CAST(:args AS json[])
) AS job (id, args_bytes, args)
RETURNING id
)
SELECT CASE WHEN count(*) < cardinality(CAST(:ids AS uuid[])) THEN fencerow.refuse_left_out()
            WHEN {{none came again}} THEN true ELSE fencerow.refuse_repeated(array_agg(inserted.id)) END FROM inserted;

-- name: submit_one
-- Insert one new job from parameters of its own: the server plans and runs it in half the time that a document takes.
-- It waits for nobody, and of what wings say of it it has only what such a job may have: `:more`.
-- Guard: the primary key and the look at what was submitted again, as in submit; RETURNING comes after the insert.
-- It answers with no row where a trigger of the user's left this one out, and a session sees to it (`Statement.stores`).
INSERT INTO fencerow.jobs ({{new columns}}{{columns of a queued submit}})
SELECT
    CAST(:id AS uuid), {{said once}}, CAST(:args_bytes AS integer), CAST(:args AS json),
    {{said once of labels}}{{values of a queued submit}}
FROM (SELECT CAST(:more AS text) AS more, fencerow.now() AS now) AS clock
RETURNING CASE WHEN {{none came again}} THEN true ELSE fencerow.refuse_repeated(ARRAY[id]) END;

-- name: resubmit
-- What submit does, for ids that may be known.
-- Guard: an id that is already live is left as it is; the rows returned are those that were inserted. Of the others
-- those that were left out are told by read_absent.
{{jobs alike}}
INSERT INTO fencerow.jobs ({{all new columns}})
{{each of the jobs alike}}
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: read_absent
-- Of ids that were not inserted, those that are of no job: a trigger of the user's left their rows out. A statement of its
-- own: the insert may have met a row that its snapshot does not show. It reads no column but the ids, which whoever submits
-- may read.
SELECT wanted.id FROM unnest(CAST(:ids AS uuid[])) AS wanted (id)
EXCEPT SELECT job.id FROM fencerow.jobs AS job WHERE job.id = ANY(CAST(:ids AS uuid[]))
EXCEPT SELECT ended.id FROM fencerow.finished_jobs AS ended WHERE ended.id = ANY(CAST(:ids AS uuid[]))
EXCEPT SELECT spent.id FROM fencerow.spent_ids AS spent WHERE spent.id = ANY(CAST(:ids AS uuid[]));

-- name: before_copy
-- What COPY cannot ask for itself: the time now, and whether the ends of new jobs are events.
SELECT fencerow.us(fencerow.now()), EXISTS (SELECT 1 FROM fencerow.event_groups AS known WHERE known.outcomes);

-- name: copy_jobs
-- Insert many new jobs, whose columns the client has computed from one reading of the clock.
-- Guard: the primary key, as in submit, and that the server counts as many; refuse_repeated follows in the same transaction.
COPY fencerow.jobs ({{new columns}}) FROM STDIN;

-- name: copy_gated
-- The same where wings say more of some of the jobs.
COPY fencerow.jobs ({{all new columns}}) FROM STDIN;

-- name: refuse_repeated
-- The look that belongs to a COPY, which returns nothing: at the ids that were submitted again, as in submit.
SELECT fencerow.refuse_repeated(CAST(:ids AS uuid[]));

-- fragment: they have come again
-- First submits look from now on, see `none came again`. Said once for all rows, and not where there are none.
(SELECT setval(
    CAST($$fencerow.repeats_until$$ AS regclass), CAST(extract(epoch FROM fencerow.now()) AS bigint) + 2 * 86400
)) > 0

-- name: withdraw
-- Take back, in the same transaction, inserted repeats of jobs that have finished meanwhile, or of ephemeral ones
-- that succeeded.
-- It is a statement of its own because the insert's snapshot may be older than the move to the finished jobs.
-- Those of which a first submit may still be on its way are left for it to find (see refuse_repeated).
-- Guard: only ids that this transaction has just inserted are passed in, and only finished ones are taken.
WITH noted AS (
    INSERT INTO fencerow.repeated_ids (id, at)
    SELECT again.id, CASE WHEN {{they have come again}} THEN (SELECT fencerow.now()) END
    FROM unnest(CAST(:repeated AS uuid[])) AS again (id)
    ON CONFLICT (id) DO NOTHING
)
DELETE FROM fencerow.jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state IN ('waiting', 'queued')
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

-- name: give_keys_back
-- Forget keys that this transaction has reserved for jobs that were there already: their lifetime is over, and no end
-- to come would start it again.
-- Guard: the job, and that no end has stamped it. Only this transaction sees the rows.
DELETE FROM fencerow.keys AS owned
USING json_to_recordset(CAST(:keys AS json)) AS wanted (scope text, key text, job_id uuid)
WHERE owned.scope = wanted.scope
  AND owned.key = wanted.key
  AND owned.job_id = wanted.job_id
  AND owned.expires_at IS NULL
RETURNING owned.scope, owned.key;

-- name: give_keys
-- Idempotency keys that this transaction has reserved belong to jobs that were there already. The ends of those do not
-- know of them: their lifetime counts from now.
-- Guard: the job for which the key was reserved.
UPDATE fencerow.keys AS owned
SET job_id = given.job_id,
    expires_at = (SELECT fencerow.now()) + fencerow.seconds(owned.lifetime_s)
FROM json_to_recordset(CAST(:keys AS json)) AS given (scope text, key text, was uuid, job_id uuid)
WHERE owned.scope = given.scope
  AND owned.key = given.key
  AND owned.job_id = given.was;

-- name: read_known
-- The jobs of these ids as they were submitted, live and finished: an id stands for one job. The last column is the
-- fingerprint that the first change of its arguments, or the first submit in its place, left of those before.
SELECT job.id, job.name, CAST(job.args AS text), job.scope, job.key,
       (SELECT note.detail ->> 'args_was'
        FROM fencerow.job_events AS note
        WHERE note.job_id = job.id AND note.kind IN ('changed', 'replaced') AND note.detail ->> 'args_was' IS NOT NULL
        ORDER BY note.id
        LIMIT 1)
FROM fencerow.all_jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]));

-- name: drop_expired_keys
-- Forget keys whose lifetime, counted from the end of their job, is over.
-- Guard: the expiry, so a key that was taken anew meanwhile stays.
DELETE FROM fencerow.keys AS owned
USING json_to_recordset(CAST(:keys AS json)) AS wanted (scope text, key text)
WHERE owned.scope = wanted.scope
  AND owned.key = wanted.key
  AND owned.expires_at <= (SELECT fencerow.now())
RETURNING owned.scope, owned.key;
