-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: schedules_used
-- A row, if there are schedules, programs that declared some, and ticks; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.schedules)
   OR EXISTS (SELECT 1 FROM fencerow.schedule_programs)
   OR EXISTS (SELECT 1 FROM fencerow.schedule_ticks);
