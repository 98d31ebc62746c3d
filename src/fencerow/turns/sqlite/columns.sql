-- Columns of a job that are of its turns, its share and its label; in the table of jobs, where indexes need them.

-- fragment: turn columns of a submit
-- What a submit writes and no move changes, but a change of the job.
exclusive, exclusive_at_once, strict, limits, share, affinity, affinity_wait_s

-- at: where it waits
-- The gate of a key or a limit, while it waits there.
gate

-- at: columns of wings
{{turn columns of a submit}}, gate, turned_at, fell_back_for

-- at: columns that a submit writes
{{turn columns of a submit}}

-- at: who needs a turn
-- Of a key or of limits: a turn that it has is free once it does not run.
exclusive IS NOT NULL OR limits IS NOT NULL

-- at: fields of wings
'exclusive', job.exclusive, 'exclusive_at_once', job.exclusive_at_once,
'strict', json(CASE WHEN job.strict THEN 'true' ELSE 'false' END),
'limits', CASE WHEN json_valid(job.limits) THEN json(job.limits) END,
'gate', job.gate, 'share', job.share, 'affinity', job.affinity, 'affinity_wait_s', job.affinity_wait_s
