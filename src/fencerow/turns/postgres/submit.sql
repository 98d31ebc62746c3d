-- What submits say of turns, shares and labels. Of each job `turns/gating.py` says where it waits first, its key, limits, share
-- and label, behind its arguments: the places 3 to 7 of its array.

-- at: columns of a queued submit
-- Who has a share waits for nobody. A label is a reason to go the long way.
share

-- at: values of a queued submit
clock.more

-- at: what a template says
given.exclusive_at_once, given.strict, given.affinity_wait_s

-- at: fields of a template
exclusive_at_once integer, strict boolean, affinity_wait_s double precision

-- at: values that a submit writes
CASE WHEN alike.more THEN job.value ->> 4 END, alike.exclusive_at_once, alike.strict,
CASE WHEN alike.more AND job.value ->> 5 IS NOT NULL
     THEN ARRAY(SELECT json_array_elements_text(job.value -> 5)) END,
CASE WHEN alike.more THEN job.value ->> 6 END, CASE WHEN alike.more THEN job.value ->> 7 END,
CASE WHEN alike.more AND job.value ->> 7 IS NOT NULL THEN alike.affinity_wait_s END

-- at: what a replaced job begins with
-- Nobody has given it a turn, and it waits for its label from when it is due now.
turned_at = NULL, fell_back_for = 0
