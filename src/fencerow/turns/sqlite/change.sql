-- What a change of a job makes of its turns and its label: see turns/changing.py.

-- at: read where a job changes
exclusive, limits

-- at: what a change says
json_extract(given.value, '$.new_exclusive') AS new_exclusive, json_extract(given.value, '$.new_limits') AS new_limits

-- at: what a change sets
-- One that waits for its label does so again, from when it is due now.
exclusive = CASE WHEN wanted.elsewhere THEN wanted.new_exclusive ELSE exclusive END,
limits = CASE WHEN wanted.elsewhere THEN wanted.new_limits ELSE limits END,
fell_back_for = 0
