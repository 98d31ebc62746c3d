-- Columns of a job, each list once. `{{job.budgets}}` writes each of one as `job` has it.

-- fragment: budgets
-- How often and for how long a job may be tried: columns that a submit writes, and that no move of the job changes.
attempts_max, crashes_max, snoozes_max, timeout_s

-- fragment: budgets with types
-- The same where a document is read.
attempts_max integer, crashes_max integer, snoozes_max integer, timeout_s double precision

-- fragment: job columns
-- All columns of a job: the core's, in their order, then those that wings have of their own.
id, queue, name, state, priority, suspect, awaited, subscribed, ephemeral, run_at, attempt, failures, crashes, snoozes,
{{budgets}}, holder, claimed_at, deadline_at,
cancel_requested_at, cancel_requested_by, expires_at, retention_s, scope, key, lane,
submitted_at, submitted_by, revived_at, ended_at, period, args_bytes, args, options, tags, metadata, headers, result,
error{{columns of wings}}
