-- Schedules are made, changed, paused and removed. One transaction writes at a time: it has all rows locked.

-- name: schedules_now
-- The time from which next fires are computed.
SELECT fencerow.now();

-- name: lock_schedules
-- The first rows of a schedule behind an entity, or one of them, as they are now.
SELECT each.entity, each.kind, each.origin, each.definition, each.digest, each.forgotten_until, each.next_at,
       each.paused_at IS NOT NULL, each.paused_with_all, each.undeclared_at IS NOT NULL, fencerow.now()
FROM fencerow.schedules AS each
WHERE each.name = :name AND (:entity IS NULL OR each.entity = :entity)
  AND (:after IS NULL OR each.entity > :after)
ORDER BY each.entity
LIMIT :limit;

-- name: lock_declared
-- What a program has declared before, and what has a name that it declares now; entities stay as they are.
SELECT each.name, each.kind, each.origin, each.owner, each.digest, each.job
FROM fencerow.schedules AS each
WHERE each.kind <> 'entity'
  AND (each.name IN (SELECT value FROM json_each(:names)) OR (each.origin = 'code' AND each.owner = :owner AND each.undeclared_at IS NULL))
ORDER BY each.name, each.entity;

-- name: put_schedules
-- Make rows, or change those that are there and differ. A new entity is paused as its head is. What is overdue stays
-- due; else a changed row waits for the next fire of its new definition. One that was no longer declared is so again.
-- Guard: the primary key; code changes no row of a person's, and a person none of code's without taking it over.
INSERT INTO fencerow.schedules AS each (
    name, entity, kind, job, origin, owner, definition, digest, next_at, zones, paused_at, paused_by, pause_reason,
    paused_with_all, changed_at, changed_by
)
SELECT json_extract(given.value, '$.name'), json_extract(given.value, '$.entity'), json_extract(given.value, '$.kind'),
       json_extract(given.value, '$.job'), :origin, :owner, json_extract(given.value, '$.definition'),
       json_extract(given.value, '$.digest'), json_extract(given.value, '$.next_us'), :zones, head.paused_at,
       head.paused_by, head.pause_reason, head.paused_at IS NOT NULL, fencerow.now(), :actor
FROM json_each(:rows) AS given
LEFT JOIN fencerow.schedules AS head
       ON json_extract(given.value, '$.kind') = 'entity' AND head.name = json_extract(given.value, '$.name')
      AND head.entity = '' AND head.kind = 'head'
WHERE true
ON CONFLICT (name, entity) DO UPDATE
SET kind = excluded.kind, job = excluded.job, origin = excluded.origin, owner = excluded.owner,
    definition = excluded.definition, digest = excluded.digest, zones = excluded.zones, version = each.version + 1,
    next_at = CASE WHEN excluded.kind = 'head' THEN NULL
                   WHEN each.next_at <= fencerow.now() THEN each.next_at
                   ELSE excluded.next_at END,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by, refresh_at = NULL, trouble = NULL,
    undeclared_at = NULL
WHERE (each.origin = :origin OR :take_over)
  AND (each.digest <> excluded.digest OR each.kind <> excluded.kind OR each.origin <> excluded.origin
       OR each.owner <> excluded.owner OR each.undeclared_at IS NOT NULL)
RETURNING name, entity, version = 1;

-- fragment: is undeclared
-- What code declared, unless it is kept as undeclared already.
each.name = :name AND each.origin = 'code' AND each.undeclared_at IS NULL

-- name: find_undeclared
-- What is no longer declared: the first rows of a schedule behind an entity.
SELECT each.entity FROM fencerow.schedules AS each
WHERE {{is undeclared}}
  AND (:after IS NULL OR each.entity > :after)
ORDER BY each.entity
LIMIT :limit;

-- name: lock_undeclared
-- What is no longer declared: these rows of a schedule.
SELECT each.entity FROM fencerow.schedules AS each
WHERE {{is undeclared}} AND each.entity IN (SELECT value FROM json_each(:entities))
ORDER BY each.entity;

-- name: remove_undeclared
-- Remove what is no longer declared. Guard: nothing of a person's, neither a row nor the word in it; a row that is paused
-- with all the others may go, because the row of its schedule has the word.
DELETE FROM fencerow.schedules AS each
WHERE {{is undeclared}} AND each.entity IN (SELECT value FROM json_each(:entities))
  AND (each.paused_at IS NULL OR each.paused_with_all)
RETURNING entity;

-- name: keep_undeclared
-- What is left of it is paused by a person: it stays so, whenever it is declared again.
UPDATE fencerow.schedules AS each
SET undeclared_at = fencerow.now()
WHERE {{is undeclared}} AND each.entity IN (SELECT value FROM json_each(:entities))
  AND each.paused_at IS NOT NULL
RETURNING entity;

-- name: entities_of
-- The first entities of a schedule behind one, with what each is, who made it so, and whether it is declared no longer.
SELECT each.entity, each.digest, each.origin, each.undeclared_at IS NOT NULL FROM fencerow.schedules AS each
WHERE each.name = :name AND each.entity > :after
ORDER BY each.entity
LIMIT :limit;

-- name: remove_schedule
-- Remove these rows of a schedule: of all of them, or one entity.
DELETE FROM fencerow.schedules
WHERE name = :name AND entity IN (SELECT value FROM json_each(:entities)) AND (:entity IS NULL OR entity = :entity)
RETURNING entity;

-- name: pause_schedules
-- Let none of these fire. Guard: not paused already, the first word is kept; but a row that is paused only because all are
-- gets a word of its own.
UPDATE fencerow.schedules
SET paused_at = fencerow.now(), paused_by = :actor, pause_reason = :reason,
    paused_with_all = (:entity IS NULL AND entity <> ''), version = version + 1
WHERE name = :name AND entity IN (SELECT value FROM json_each(:entities))
  AND (paused_at IS NULL OR (paused_with_all AND :entity IS NOT NULL))
RETURNING entity;

-- name: resume_schedules
-- Let these fire again, at their next fire after now. Guard: paused, and still declared.
UPDATE fencerow.schedules
SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, paused_with_all = 0, version = version + 1,
    next_at = given.next_us, zones = :zones
FROM (
    SELECT json_extract(value, '$.entity') AS row_entity, json_extract(value, '$.next_us') AS next_us
    FROM json_each(:rows)
) AS given
WHERE name = :name AND entity = given.row_entity AND paused_at IS NOT NULL AND undeclared_at IS NULL
RETURNING entity;

-- name: resume_undeclared
-- What nobody declares was kept for its pause alone: without it, it goes.
DELETE FROM fencerow.schedules
WHERE name = :name AND undeclared_at IS NOT NULL
  AND entity IN (SELECT json_extract(value, '$.entity') FROM json_each(:rows))
RETURNING entity;

-- name: claim_refresh
-- Whoever gets the row looks at the list of entities; the others wait for the next time.
-- Guard: its time has come, and the definition is the one that this worker declares.
UPDATE fencerow.schedules
SET refresh_at = fencerow.now() + CAST(:every_s * 1000000 AS INTEGER)
WHERE name = :name AND entity = '' AND kind = 'head' AND digest = :digest
  AND (refresh_at IS NULL OR refresh_at <= fencerow.now())
RETURNING name;

-- name: refresh_sooner
-- It could not be refreshed: try again sooner, and say why. Guard: the definition is still the same.
UPDATE fencerow.schedules
SET trouble = :trouble, refresh_at = min(refresh_at, fencerow.now() + CAST(:soon_s * 1000000 AS INTEGER))
WHERE name = :name AND entity = '' AND kind = 'head' AND digest = :digest;

-- name: refreshed
-- It was refreshed: what was wrong with its list, or that nothing is.
UPDATE fencerow.schedules SET trouble = :trouble
WHERE name = :name AND entity = '' AND trouble IS NOT :trouble;

-- name: read_schedules
-- Schedules in the order of their names, entities behind their head: all, those of a name, or one. What is no longer
-- declared is always among them: nobody else tells of it.
SELECT each.name, each.entity, each.kind, each.job, each.origin, each.owner, each.definition, each.version,
       each.next_at, each.last_at, each.last_job_id, each.zones, each.paused_at, each.paused_by, each.pause_reason,
       each.changed_at, each.changed_by, each.trouble, each.digest, each.forgotten_until, each.paused_with_all,
       each.undeclared_at
FROM fencerow.schedules AS each
WHERE (:name IS NULL OR each.name = :name)
  AND (:entity IS NULL OR each.entity = :entity)
  AND (:entities OR each.kind <> 'entity' OR each.undeclared_at IS NOT NULL)
  AND (each.name, each.entity) > (:after_name, :after_entity)
ORDER BY each.name, each.entity
LIMIT :limit;

-- name: count_entities
-- How many entities each schedule has, how many of them are paused, and when the first of the others is due.
SELECT each.name, count(*), count(each.paused_at), min(each.next_at) FILTER (WHERE each.paused_at IS NULL),
       max(each.last_at)
FROM fencerow.schedules AS each
WHERE each.entity <> '' AND each.undeclared_at IS NULL AND (:name IS NULL OR each.name = :name)
GROUP BY each.name;

-- name: schedule_names
-- The names that there are, for who asked for another one.
SELECT DISTINCT each.name FROM fencerow.schedules AS each ORDER BY each.name LIMIT 1000;
