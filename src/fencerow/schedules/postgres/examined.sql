-- What the doctor asks of schedules: numbers of all, and the first few of each kind by name. Reads only.

-- name: count_schedules
-- How many there are, how many are in each kind of trouble, and by which versions of the time zones they were computed.
SELECT count(*) FILTER (WHERE each.kind <> 'head' AND each.undeclared_at IS NULL),
       count(*) FILTER (WHERE each.trouble IS NOT NULL),
       count(*) FILTER (WHERE each.undeclared_at IS NOT NULL),
       count(*) FILTER (WHERE {{is overdue}}),
       string_agg(DISTINCT each.zones, ','),
       fencerow.us((SELECT fencerow.now()))
FROM fencerow.schedules AS each;

-- name: notable_schedules
-- The first few that are in trouble, no longer declared, overdue, or ahead: those of which a fire was decided at a time that
-- is still to come wait for one behind it.
SELECT * FROM (
    SELECT 'trouble', each.name, each.entity, each.trouble, fencerow.us(each.next_at)
    FROM fencerow.schedules AS each WHERE each.trouble IS NOT NULL
    ORDER BY each.name, each.entity LIMIT :limit
) AS troubled
UNION ALL
SELECT * FROM (
    SELECT 'undeclared', each.name, each.entity, '', fencerow.us(each.next_at)
    FROM fencerow.schedules AS each WHERE each.undeclared_at IS NOT NULL
    ORDER BY each.name, each.entity LIMIT :limit
) AS undeclared
UNION ALL
SELECT * FROM (
    SELECT 'overdue', each.name, each.entity, '', fencerow.us(each.next_at)
    FROM fencerow.schedules AS each WHERE {{is overdue}}
    ORDER BY each.next_at, each.name, each.entity LIMIT 1
) AS overdue
UNION ALL
SELECT * FROM (
    SELECT DISTINCT 'ahead', each.name, each.entity, '', fencerow.us(each.next_at)
    FROM fencerow.schedule_ticks AS tick
    JOIN fencerow.schedules AS each ON each.name = tick.name AND each.entity = tick.entity
    WHERE tick.at > (SELECT fencerow.now()) + fencerow.seconds(CAST(:ahead_s AS double precision))
      AND each.next_at > tick.fire_at
    LIMIT :limit
) AS ahead;

-- fragment: is overdue
-- It should have fired a while ago.
each.kind <> 'head' AND each.paused_at IS NULL
  AND each.next_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:overdue_s AS double precision))
