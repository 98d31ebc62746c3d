-- Schedules are made, changed, paused and removed. Whoever changes several rows locks them first, in the order of their
-- key: two who change the same ones never wait for each other in a ring, and a tick never waits for one.

-- name: schedules_now
-- The time from which next fires are computed.
SELECT fencerow.us(fencerow.now());

-- name: lock_schedules
-- Lock the first rows of a schedule behind an entity, or one of them, as they are now. A statement of its own: what follows
-- sees what whoever held them before has committed. It has fewer than :limit only where no more are left.
SELECT each.entity, each.kind, each.origin, each.definition, each.digest, fencerow.us(each.forgotten_until),
       fencerow.us(each.next_at), each.paused_at IS NOT NULL, each.paused_with_all,
       each.undeclared_at IS NOT NULL, fencerow.us((SELECT fencerow.now()))
FROM fencerow.schedules AS each
WHERE each.name = :name AND (CAST(:entity AS text) IS NULL OR each.entity = CAST(:entity AS text))
  AND (CAST(:after AS text) IS NULL OR each.entity > CAST(:after AS text))
ORDER BY each.entity
LIMIT :limit
FOR UPDATE;

-- name: lock_declared
-- Lock what a program has declared before, and what has a name that it declares now; entities stay as they are.
SELECT each.name, each.kind, each.origin, each.owner, each.digest, each.job
FROM fencerow.schedules AS each
WHERE each.kind <> 'entity'
  AND (each.name = ANY(CAST(:names AS text[])) OR (each.origin = 'code' AND each.owner = :owner AND each.undeclared_at IS NULL))
ORDER BY each.name, each.entity
FOR UPDATE;

-- name: put_schedules
-- Make rows, or change those that are there and differ. A new entity is paused as its head is. What is overdue stays
-- due; else a changed row waits for the next fire of its new definition. One that was no longer declared is so again.
-- Guard: the primary key; code changes no row of a person's, and a person none of code's without taking it over.
INSERT INTO fencerow.schedules AS each (
    name, entity, kind, job, origin, owner, definition, digest, next_at, zones, paused_at, paused_by, pause_reason,
    paused_with_all, changed_at, changed_by
)
SELECT given.name, given.entity, given.kind, given.job, CAST(:origin AS text), CAST(:owner AS text), given.definition,
       given.digest, fencerow.at(given.next_us), CAST(:zones AS text), head.paused_at, head.paused_by,
       head.pause_reason, head.paused_at IS NOT NULL, (SELECT fencerow.now()), CAST(:actor AS text)
FROM json_to_recordset(CAST(:rows AS json)) AS given (
    name text, entity text, kind text, job text, definition text, digest text, next_us bigint
)
LEFT JOIN fencerow.schedules AS head
       ON given.kind = 'entity' AND head.name = given.name AND head.entity = '' AND head.kind = 'head'
ORDER BY given.name, given.entity
ON CONFLICT (name, entity) DO UPDATE
SET kind = excluded.kind, job = excluded.job, origin = excluded.origin, owner = excluded.owner,
    definition = excluded.definition, digest = excluded.digest, zones = excluded.zones, version = each.version + 1,
    next_at = CASE WHEN excluded.kind = 'head' THEN NULL
                   WHEN each.next_at <= (SELECT fencerow.now()) THEN each.next_at
                   ELSE excluded.next_at END,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by, refresh_at = NULL, trouble = NULL,
    undeclared_at = NULL
WHERE (each.origin = CAST(:origin AS text) OR CAST(:take_over AS boolean))
  AND (each.digest <> excluded.digest OR each.kind <> excluded.kind OR each.origin <> excluded.origin
       OR each.owner <> excluded.owner OR each.undeclared_at IS NOT NULL)
RETURNING each.name, each.entity, each.version = 1;

-- fragment: is undeclared
-- What code declared, unless it is kept as undeclared already.
each.name = :name AND each.origin = 'code' AND each.undeclared_at IS NULL

-- name: find_undeclared
-- What is no longer declared: the first rows of a schedule behind an entity.
SELECT each.entity FROM fencerow.schedules AS each
WHERE {{is undeclared}}
  AND (CAST(:after AS text) IS NULL OR each.entity > CAST(:after AS text))
ORDER BY each.entity
LIMIT :limit;

-- name: lock_undeclared
-- Lock what is no longer declared: these rows of a schedule. A statement of its own: whether somebody paused or resumed a
-- row is decided before the next two look.
SELECT each.entity FROM fencerow.schedules AS each
WHERE {{is undeclared}} AND each.entity = ANY(CAST(:entities AS text[]))
ORDER BY each.entity
FOR UPDATE;

-- name: remove_undeclared
-- Remove what is no longer declared. Guard: nothing of a person's, neither a row nor the word in it; a row that is paused
-- with all the others may go, because the row of its schedule has the word.
DELETE FROM fencerow.schedules AS each
WHERE {{is undeclared}} AND each.entity = ANY(CAST(:entities AS text[]))
  AND (each.paused_at IS NULL OR each.paused_with_all)
RETURNING each.entity;

-- name: keep_undeclared
-- What is left of it is paused by a person: it stays so, whenever it is declared again.
UPDATE fencerow.schedules AS each
SET undeclared_at = (SELECT fencerow.now())
WHERE {{is undeclared}} AND each.entity = ANY(CAST(:entities AS text[]))
  AND each.paused_at IS NOT NULL
RETURNING each.entity;

-- name: entities_of
-- The first entities of a schedule behind one, with what each is, who made it so, and whether it is declared no longer.
SELECT each.entity, each.digest, each.origin, each.undeclared_at IS NOT NULL FROM fencerow.schedules AS each
WHERE each.name = :name AND each.entity > CAST(:after AS text)
ORDER BY each.entity
LIMIT :limit;

-- name: remove_schedule
-- Remove these rows of a schedule: of all of them, or one entity. The rows are locked.
DELETE FROM fencerow.schedules AS each
WHERE each.name = :name AND each.entity = ANY(CAST(:entities AS text[]))
  AND (CAST(:entity AS text) IS NULL OR each.entity = CAST(:entity AS text))
RETURNING each.entity;

-- name: pause_schedules
-- Let none of these fire. Guard: not paused already, the first word is kept; but a row that is paused only because all are
-- gets a word of its own.
UPDATE fencerow.schedules AS each
SET paused_at = (SELECT fencerow.now()), paused_by = CAST(:actor AS text), pause_reason = CAST(:reason AS text),
    paused_with_all = (CAST(:entity AS text) IS NULL AND each.entity <> ''), version = each.version + 1
WHERE each.name = :name AND each.entity = ANY(CAST(:entities AS text[]))
  AND (each.paused_at IS NULL OR (each.paused_with_all AND CAST(:entity AS text) IS NOT NULL))
RETURNING each.entity;

-- name: resume_schedules
-- Let these fire again, at their next fire after now. Guard: paused, and still declared.
UPDATE fencerow.schedules AS each
SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, paused_with_all = false, version = each.version + 1,
    next_at = fencerow.at(given.next_us), zones = CAST(:zones AS text)
FROM json_to_recordset(CAST(:rows AS json)) AS given (entity text, next_us bigint)
WHERE each.name = :name AND each.entity = given.entity AND each.paused_at IS NOT NULL AND each.undeclared_at IS NULL
RETURNING each.entity;

-- name: resume_undeclared
-- What nobody declares was kept for its pause alone: without it, it goes. The rows are locked.
DELETE FROM fencerow.schedules AS each
USING json_to_recordset(CAST(:rows AS json)) AS given (entity text, next_us bigint)
WHERE each.name = :name AND each.entity = given.entity AND each.undeclared_at IS NOT NULL
RETURNING each.entity;

-- name: claim_refresh
-- Whoever gets the row looks at the list of entities; the others wait for the next time.
-- Guard: its time has come, and the definition is the one that this worker declares.
UPDATE fencerow.schedules AS each
SET refresh_at = (SELECT fencerow.now()) + fencerow.seconds(CAST(:every_s AS double precision))
WHERE each.name = :name AND each.entity = '' AND each.kind = 'head' AND each.digest = :digest
  AND (each.refresh_at IS NULL OR each.refresh_at <= (SELECT fencerow.now()))
RETURNING each.name;

-- name: refresh_sooner
-- It could not be refreshed: try again sooner, and say why. Guard: the definition is still the same.
UPDATE fencerow.schedules AS each
SET trouble = CAST(:trouble AS text),
    refresh_at = least(each.refresh_at, (SELECT fencerow.now()) + fencerow.seconds(CAST(:soon_s AS double precision)))
WHERE each.name = :name AND each.entity = '' AND each.kind = 'head' AND each.digest = :digest;

-- name: refreshed
-- It was refreshed: what was wrong with its list, or that nothing is.
UPDATE fencerow.schedules AS each SET trouble = CAST(:trouble AS text)
WHERE each.name = :name AND each.entity = '' AND each.trouble IS DISTINCT FROM CAST(:trouble AS text);

-- name: read_schedules
-- Schedules in the order of their names, entities behind their head: all, those of a name, or one. What is no longer
-- declared is always among them: nobody else tells of it.
SELECT each.name, each.entity, each.kind, each.job, each.origin, each.owner, each.definition, each.version,
       fencerow.us(each.next_at), fencerow.us(each.last_at), each.last_job_id, each.zones, fencerow.us(each.paused_at),
       each.paused_by, each.pause_reason, fencerow.us(each.changed_at), each.changed_by, each.trouble, each.digest,
       fencerow.us(each.forgotten_until), each.paused_with_all, fencerow.us(each.undeclared_at)
FROM fencerow.schedules AS each
WHERE (CAST(:name AS text) IS NULL OR each.name = CAST(:name AS text))
  AND (CAST(:entity AS text) IS NULL OR each.entity = CAST(:entity AS text))
  AND (CAST(:entities AS boolean) OR each.kind <> 'entity' OR each.undeclared_at IS NOT NULL)
  AND (each.name, each.entity) > (CAST(:after_name AS text), CAST(:after_entity AS text))
ORDER BY each.name, each.entity
LIMIT :limit;

-- name: count_entities
-- How many entities each schedule has, how many of them are paused, and when the first of the others is due.
SELECT each.name, count(*), count(each.paused_at),
       fencerow.us(min(each.next_at) FILTER (WHERE each.paused_at IS NULL)), fencerow.us(max(each.last_at))
FROM fencerow.schedules AS each
WHERE each.entity <> '' AND each.undeclared_at IS NULL
  AND (CAST(:name AS text) IS NULL OR each.name = CAST(:name AS text))
GROUP BY each.name;

-- name: schedule_names
-- The names that there are, for who asked for another one.
SELECT DISTINCT each.name FROM fencerow.schedules AS each ORDER BY each.name LIMIT 1000;
