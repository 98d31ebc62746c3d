-- Changing a job that nobody runs: when it is due, its priority, its queue, its arguments.

-- fragment: idle
-- What can be changed of these: nobody runs them, and they have not ended. `args` is read where new ones are to come.
SELECT job.id, job.name, job.queue, job.priority, fencerow.us(job.run_at), job.args_bytes, CAST(job.options AS text),
       CASE WHEN CAST(:with_args AS boolean) THEN CAST(job.args AS text) END, fencerow.us(job.expires_at),
       fencerow.us(fencerow.now()),
       job.exclusive, CAST(to_json(job.limits) AS text)
FROM fencerow.jobs AS job
WHERE job.id = ANY(CAST(:ids AS uuid[]))
  AND job.state IN ('waiting', 'queued')

-- name: lock_idle
-- Lock jobs that nobody runs before they are changed, so that what is told of them before stays true.
-- Guard: waiting or queued; a claim, a cancel or an expiry that came first leaves nothing to lock.
{{idle}}
FOR UPDATE;

-- name: lock_free_idle
-- The same for many jobs. Rows that a stranger has locked are left: they are changed alone.
{{idle}}
FOR UPDATE SKIP LOCKED;

-- name: change
-- Change jobs that nobody runs. A job that is to run at once and is due already keeps its place. One that needs a turn
-- and is put off gives it up and waits for it again. One that is to wait elsewhere from now on gives up what it has, and
-- waits at the new place, or nowhere. Whoever waits at a place arrives there anew: a hand-over may have passed it over while it was
-- locked. One that waits for its label does so again, from when it is due now. One that is suspended stays so.
-- Guard: waiting or queued; a claim, a cancel or an expiry that came first makes this change nothing.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
wanted AS MATERIALIZED (
    SELECT CAST(each.id AS uuid) AS id, given.queue, given.priority,
           COALESCE(fencerow.at(given.run_at_us), clock.now + fencerow.seconds(given.delay_s)) AS run_at,
           given.at_once, given.args, given.args_bytes, given.options, given.elsewhere, given.place, given.new_exclusive,
           given.new_limits
    FROM json_to_recordset(CAST(:changes AS json)) AS given (
        ids json, queue text, priority smallint, run_at_us bigint, delay_s double precision, at_once boolean,
        args text, args_bytes integer, options text, elsewhere boolean, place text, new_exclusive text, new_limits text[]
    )
    CROSS JOIN clock
    CROSS JOIN LATERAL json_array_elements_text(given.ids) AS each (id)
),
moved AS (
UPDATE fencerow.jobs AS job
SET queue = COALESCE(wanted.queue, job.queue),
    priority = COALESCE(wanted.priority, job.priority),
    run_at = CASE WHEN wanted.at_once THEN least(job.run_at, clock.now) ELSE COALESCE(wanted.run_at, job.run_at) END,
    args = COALESCE(CAST(wanted.args AS json), job.args),
    args_bytes = COALESCE(wanted.args_bytes, job.args_bytes),
    options = CASE WHEN wanted.args IS NULL THEN job.options ELSE CAST(wanted.options AS json) END,
    exclusive = CASE WHEN wanted.elsewhere THEN wanted.new_exclusive ELSE job.exclusive END,
    limits = CASE WHEN wanted.elsewhere THEN wanted.new_limits ELSE job.limits END,
    fell_back_for = 0,
    state = CASE WHEN {{is suspended}} THEN 'waiting'
                 WHEN wanted.elsewhere THEN CASE WHEN wanted.place IS NULL THEN 'queued' ELSE 'waiting' END
                 WHEN wanted.run_at > clock.now AND (false{{who needs a turn}}) THEN 'waiting'
                 ELSE job.state END,
    {{where it waits}} = CASE WHEN {{is suspended}} THEN NULL
                WHEN wanted.elsewhere THEN wanted.place
                WHEN wanted.run_at > clock.now AND job.state = 'queued' THEN {{where it waits first}}
                ELSE job.{{where it waits}} END
FROM wanted, clock
WHERE job.id = wanted.id
  AND job.state IN ('waiting', 'queued')
RETURNING job.id, job.state, job.queue, job.priority, job.run_at, job.args_bytes, fencerow.lane(job){{job.columns of the moved}}
){{when jobs wait again}}
SELECT CAST(id AS text), state, queue, priority, fencerow.us(run_at), args_bytes, lane, exclusive,
       CAST(to_json(limits) AS text)
FROM moved;

-- name: note_changed
-- Tell in the timelines who changed what. Part of the transaction that did; its rows are locked.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, (SELECT fencerow.now()), 'changed', CAST(:actor AS text), given.detail
FROM json_to_recordset(CAST(:notes AS json)) AS given (id uuid, detail json)
JOIN fencerow.jobs AS job ON job.id = given.id;
