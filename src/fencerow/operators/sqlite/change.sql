-- Changing a job that nobody runs: when it is due, its priority, its queue, its arguments.

-- fragment: idle
-- What can be changed of these: nobody runs them, and they have not ended. `args` is read where new ones are to come.
SELECT job.id, job.name, job.queue, job.priority, job.run_at, job.args_bytes, job.options,
       CASE WHEN :with_args THEN job.args END, job.expires_at, fencerow.now(), job.exclusive, job.limits
FROM fencerow.jobs AS job
WHERE job.id IN (SELECT value FROM json_each(:ids))
  AND job.state IN ('waiting', 'queued')

-- name: lock_idle
-- Jobs that nobody runs before they are changed; the write lock is held already.
-- Guard: waiting or queued.
{{idle}};

-- name: lock_free_idle
-- The same for many jobs. On PostgreSQL it leaves those that a stranger has locked.
{{idle}};

-- name: change
-- Change jobs that nobody runs. A job that is to run at once and is due already keeps its place. One that needs a turn
-- and is put off gives it up and waits for it again. One that is to wait elsewhere from now on gives up what it has, and
-- waits at the new place, or nowhere. Whoever waits at a place arrives there anew. One that waits for its label does so
-- again, from when it is due now. One that is suspended stays so.
-- Guard: waiting or queued.
UPDATE fencerow.jobs
SET queue = COALESCE(wanted.queue, fencerow.jobs.queue),
    priority = COALESCE(wanted.priority, fencerow.jobs.priority),
    run_at = CASE WHEN wanted.at_once THEN min(fencerow.jobs.run_at, fencerow.now())
                  ELSE COALESCE(wanted.run_at_us, fencerow.now() + CAST(wanted.delay_s * 1000000 AS INTEGER),
                                fencerow.jobs.run_at) END,
    args = COALESCE(wanted.args, fencerow.jobs.args),
    args_bytes = COALESCE(wanted.args_bytes, fencerow.jobs.args_bytes),
    options = CASE WHEN wanted.args IS NULL THEN fencerow.jobs.options ELSE wanted.options END,
    exclusive = CASE WHEN wanted.elsewhere THEN wanted.new_exclusive ELSE exclusive END,
    limits = CASE WHEN wanted.elsewhere THEN wanted.new_limits ELSE limits END,
    fell_back_for = 0,
    state = CASE WHEN state = 'waiting' AND {{where it waits}} IS NULL THEN 'waiting'  -- suspended
                 WHEN wanted.elsewhere THEN CASE WHEN wanted.place IS NULL THEN 'queued' ELSE 'waiting' END
                 WHEN (wanted.run_at_us > fencerow.now() OR wanted.delay_s > 0)
                      AND (0{{who needs a turn}}) THEN 'waiting'
                 ELSE fencerow.jobs.state END,
    {{where it waits}} = CASE WHEN state = 'waiting' AND {{where it waits}} IS NULL THEN NULL
                WHEN wanted.elsewhere THEN wanted.place
                WHEN (wanted.run_at_us > fencerow.now() OR wanted.delay_s > 0) AND fencerow.jobs.state = 'queued'
                THEN {{where it waits first}} ELSE fencerow.jobs.{{where it waits}} END
FROM (SELECT job.value AS id, json_extract(given.value, '$.queue') AS queue,
             json_extract(given.value, '$.priority') AS priority, json_extract(given.value, '$.run_at_us') AS run_at_us,
             json_extract(given.value, '$.delay_s') AS delay_s, json_extract(given.value, '$.at_once') AS at_once,
             json_extract(given.value, '$.args') AS args, json_extract(given.value, '$.args_bytes') AS args_bytes,
             json_extract(given.value, '$.options') AS options, json_extract(given.value, '$.elsewhere') AS elsewhere,
             json_extract(given.value, '$.place') AS place,
             json_extract(given.value, '$.new_exclusive') AS new_exclusive,
             json_extract(given.value, '$.new_limits') AS new_limits
      FROM json_each(:changes) AS given CROSS JOIN json_each(given.value, '$.ids') AS job) AS wanted
WHERE fencerow.jobs.id = wanted.id
  AND fencerow.jobs.state IN ('waiting', 'queued')
RETURNING id, state, queue, priority, run_at, args_bytes, lane, exclusive, limits;
{{into the moved}}
SELECT job.id
FROM json_each(:changes) AS given CROSS JOIN json_each(given.value, '$.ids') AS each
JOIN fencerow.jobs AS job ON job.id = each.value
WHERE job.state = 'waiting';
{{when jobs wait again}}
{{out of the moved}};

-- name: note_changed
-- Tell in the timelines who changed what. Part of the transaction that did.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'changed', :actor, json_extract(given.value, '$.detail')
FROM json_each(:notes) AS given
JOIN fencerow.jobs AS job ON job.id = json_extract(given.value, '$.id');
