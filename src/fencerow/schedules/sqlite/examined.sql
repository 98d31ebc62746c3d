-- What the doctor asks of schedules: numbers of all, and the first few of each kind by name. Reads only.

-- name: count_schedules
-- How many there are, how many are in each kind of trouble, and by which versions of the time zones they were computed.
SELECT count(*) FILTER (WHERE each.kind <> 'head' AND each.undeclared_at IS NULL),
       count(*) FILTER (WHERE each.trouble IS NOT NULL),
       count(*) FILTER (WHERE each.undeclared_at IS NOT NULL),
       count(*) FILTER (WHERE {{is overdue}}),
       group_concat(DISTINCT each.zones),
       fencerow.now()
FROM fencerow.schedules AS each;

-- name: notable_schedules
-- The first few that are in trouble, no longer declared, overdue, or ahead: those of which a fire was decided at a time that
-- is still to come wait for one behind it.
SELECT * FROM (
    SELECT 'trouble', each.name, each.entity, each.trouble, each.next_at
    FROM fencerow.schedules AS each WHERE each.trouble IS NOT NULL
    ORDER BY each.name, each.entity LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT 'undeclared', each.name, each.entity, '', each.next_at
    FROM fencerow.schedules AS each WHERE each.undeclared_at IS NOT NULL
    ORDER BY each.name, each.entity LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT 'overdue', each.name, each.entity, '', each.next_at
    FROM fencerow.schedules AS each WHERE {{is overdue}}
    ORDER BY each.next_at, each.name, each.entity LIMIT 1
)
UNION ALL
SELECT * FROM (
    SELECT DISTINCT 'ahead', each.name, each.entity, '', each.next_at
    FROM fencerow.schedule_ticks AS tick
    JOIN fencerow.schedules AS each ON each.name = tick.name AND each.entity = tick.entity
    WHERE tick.at > fencerow.now() + CAST(:ahead_s * 1000000 AS INTEGER) AND each.next_at > tick.fire_at
    LIMIT :limit
);

-- fragment: is overdue
-- It should have fired a while ago.
each.kind <> 'head' AND each.paused_at IS NULL
  AND each.next_at < fencerow.now() - CAST(:overdue_s * 1000000 AS INTEGER)
