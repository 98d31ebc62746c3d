-- What a change of a job makes of its turns and its label: see turns/changing.py.

-- at: read where a job changes
exclusive, CAST(to_json(limits) AS text)

-- at: what a change says
given.new_exclusive, given.new_limits

-- at: fields of a change
new_exclusive text, new_limits text[]

-- at: what a change sets
-- One that waits for its label does so again, from when it is due now.
exclusive = CASE WHEN wanted.elsewhere THEN wanted.new_exclusive ELSE job.exclusive END,
limits = CASE WHEN wanted.elsewhere THEN wanted.new_limits ELSE job.limits END,
fell_back_for = 0
