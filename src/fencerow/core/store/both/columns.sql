-- Columns of a job, each list once. `{{job.budgets}}` writes each of one as `job` has it.

-- fragment: budgets
-- How often and for how long a job may be tried: columns that a submit writes, and that no move of the job changes.
attempts_max, crashes_max, snoozes_max, timeout_s

-- fragment: job columns
-- All columns of a job: the core's, in their order, then those that wings have of their own.
id, queue, name, state, priority, suspect, awaited, subscribed, ephemeral, run_at, attempt, failures, crashes, snoozes,
{{budgets}}, holder, claimed_at, deadline_at,
cancel_requested_at, cancel_requested_by, expires_at, retention_s, scope, key,
submitted_at, submitted_by, revived_at, ended_at, period, args_bytes, args, options, tags, metadata, headers, result,
error{{columns of wings}}

-- fragment: new columns
-- What a submit writes; the others begin as the table says.
id, queue, name, priority, run_at, {{budgets}}, expires_at,
retention_s, scope, key, submitted_at, submitted_by, args_bytes, args, options, tags, metadata, headers,
ephemeral, subscribed

-- fragment: all new columns
-- The same for jobs that may have to wait, with what wings have of them.
{{new columns}}, state, {{where it waits}}{{columns that a submit writes}}

-- fragment: shown columns
-- Those that people are shown as they are.
id, queue, name, state, priority, attempt, failures, crashes, snoozes, {{budgets}}, holder, cancel_requested_by, retention_s,
scope, key, lane, submitted_by, args_bytes
