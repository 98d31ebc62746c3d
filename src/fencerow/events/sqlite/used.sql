-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: events_used
-- A row, if there are events, groups and their readers; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.events)
   OR EXISTS (SELECT 1 FROM fencerow.event_groups)
   OR EXISTS (SELECT 1 FROM fencerow.event_drainers)
   OR EXISTS (SELECT 1 FROM fencerow.event_asides);
