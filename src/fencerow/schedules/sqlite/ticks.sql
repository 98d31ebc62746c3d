-- Ticks: what is due fires once, whichever worker sees it first. One transaction writes at a time, which is the lock of
-- the rows here; the primary key of the ticks and the look at what was seen stand behind it as on PostgreSQL.

-- name: due_schedules
-- What is due, but for what this worker cannot compute; with :only, of one row.
SELECT each.name, each.entity, each.definition, each.version, each.next_at, fencerow.now()
FROM fencerow.schedules AS each
WHERE each.paused_at IS NULL
  AND each.next_at <= fencerow.now()
  AND each.name || '/' || each.entity NOT IN (SELECT value FROM json_each(:besides))
  AND (:only IS NULL OR each.name || '/' || each.entity = :only)
ORDER BY each.next_at, each.name, each.entity
LIMIT :limit;

-- name: due_keys
-- What a tick would look at, where one of those rows made it fail. Reads only.
SELECT each.name, each.entity
FROM fencerow.schedules AS each
WHERE each.paused_at IS NULL
  AND each.next_at <= fencerow.now()
  AND each.name || '/' || each.entity NOT IN (SELECT value FROM json_each(:besides))
ORDER BY each.next_at, each.name, each.entity
LIMIT :limit;

-- name: next_fire
-- When the next one is due, and the time now.
SELECT (
    SELECT each.next_at
    FROM fencerow.schedules AS each
    WHERE each.paused_at IS NULL
      AND each.next_at IS NOT NULL
      AND each.name || '/' || each.entity NOT IN (SELECT value FROM json_each(:besides))
    ORDER BY each.next_at
    LIMIT 1
), fencerow.now();

-- fragment: has not ended
-- Nobody claims what has expired, and the next sweep ends it: it has ended for whoever asks.
(job.state = 'running' OR COALESCE(job.expires_at > fencerow.now(), 1))

-- name: overlapping
-- Which of these have a job that has not ended: one of which nobody has seen the end, or of the latest ticks, whose job
-- may have been revived since.
SELECT json_extract(asked.value, '$.name'), json_extract(asked.value, '$.entity')
FROM json_each(:asked) AS asked
WHERE EXISTS (
    SELECT 1 FROM fencerow.jobs AS job
    WHERE job.id IN (
        SELECT tick.job_id FROM fencerow.schedule_ticks AS tick
        WHERE tick.name = json_extract(asked.value, '$.name')
          AND tick.entity = json_extract(asked.value, '$.entity')
          AND tick.job_id IS NOT NULL
        ORDER BY tick.fire_at DESC
        LIMIT 20
    )
      AND {{has not ended}}
) OR EXISTS (
    SELECT 1 FROM fencerow.schedule_ticks AS tick
    JOIN fencerow.jobs AS job ON job.id = tick.job_id
    WHERE tick.name = json_extract(asked.value, '$.name')
      AND tick.entity = json_extract(asked.value, '$.entity')
      AND tick.job_id IS NOT NULL AND NOT tick.ended
      AND {{has not ended}}
);

-- name: insert_ticks
-- Decide fires. Guard: the primary key; one that was decided before is not returned, and so makes no job.
INSERT INTO fencerow.schedule_ticks (name, entity, fire_at, made, job_id, left_out, at, made_by)
SELECT json_extract(value, '$.name'), json_extract(value, '$.entity'), json_extract(value, '$.fire_us'),
       json_extract(value, '$.made'), json_extract(value, '$.job_id'), json_extract(value, '$.left_out'),
       fencerow.now(), json_extract(value, '$.made_by')
FROM json_each(:ticks)
WHERE true
ON CONFLICT (name, entity, fire_at) DO NOTHING
RETURNING name, entity, fire_at;

-- name: make_up_ticks
-- Fires of the past that a person wants made, also those that were decided without a job.
-- Guard: the primary key, and that no job was made: a fire that has one is not returned, and so makes none.
INSERT INTO fencerow.schedule_ticks (name, entity, fire_at, made, job_id, left_out, at, made_by)
SELECT json_extract(value, '$.name'), json_extract(value, '$.entity'), json_extract(value, '$.fire_us'),
       json_extract(value, '$.made'), json_extract(value, '$.job_id'), json_extract(value, '$.left_out'),
       fencerow.now(), json_extract(value, '$.made_by')
FROM json_each(:ticks)
WHERE true
ON CONFLICT (name, entity, fire_at) DO UPDATE
SET made = excluded.made, job_id = excluded.job_id, at = excluded.at, made_by = excluded.made_by
WHERE job_id IS NULL
RETURNING name, entity, fire_at;

-- name: fires_with_job
-- Which fires of a stretch of time have made a job.
SELECT entity, fire_at
FROM fencerow.schedule_ticks
WHERE name = :name
  AND (:entity IS NULL OR entity = :entity)
  AND fire_at >= :start_us AND fire_at < :end_us
  AND job_id IS NOT NULL;

-- name: advance_schedules
-- Move rows on to their next fire. Guard: they are as they were seen; and no row ever goes back.
UPDATE fencerow.schedules
SET next_at = max(given.next_us, next_at),
    last_at = coalesce(max(given.last_us, last_at), given.last_us, last_at),
    last_job_id = coalesce(given.job_id, last_job_id),
    zones = :zones,
    trouble = NULL
FROM (
    SELECT json_extract(value, '$.name') AS row_name, json_extract(value, '$.entity') AS row_entity,
           json_extract(value, '$.seen_us') AS seen_us, json_extract(value, '$.version') AS seen_version,
           json_extract(value, '$.next_us') AS next_us, json_extract(value, '$.last_us') AS last_us,
           json_extract(value, '$.job_id') AS job_id
    FROM json_each(:moves)
) AS given
WHERE name = given.row_name
  AND entity = given.row_entity
  AND next_at = given.seen_us
  AND version = given.seen_version
RETURNING name, entity;

-- name: note_run
-- A person had this one run now. The next fire stays where it is.
UPDATE fencerow.schedules
SET last_at = coalesce(max(given.last_us, last_at), given.last_us), last_job_id = given.job_id
FROM (
    SELECT json_extract(value, '$.name') AS row_name, json_extract(value, '$.entity') AS row_entity,
           json_extract(value, '$.last_us') AS last_us, json_extract(value, '$.job_id') AS job_id
    FROM json_each(:runs)
) AS given
WHERE name = given.row_name AND entity = given.row_entity;

-- name: note_troubles
-- Why these cannot fire in some worker, or in none for now. Guard: it is news.
UPDATE fencerow.schedules
SET trouble = given.text
FROM (
    SELECT json_extract(value, '$.name') AS row_name, json_extract(value, '$.entity') AS row_entity,
           json_extract(value, '$.trouble') AS text
    FROM json_each(:troubles)
) AS given
WHERE name = given.row_name AND entity = given.row_entity AND trouble IS NOT given.text;

-- name: read_ticks
-- The latest ticks of a schedule or of one entity, with the state of the job that each made.
SELECT tick.entity, tick.fire_at, tick.made, tick.job_id, tick.left_out, tick.at, tick.made_by,
       (SELECT job.state FROM fencerow.all_jobs AS job WHERE job.id = tick.job_id)
FROM fencerow.schedule_ticks AS tick
WHERE tick.name = :name AND (:entity IS NULL OR tick.entity = :entity)
ORDER BY tick.fire_at DESC, tick.entity
LIMIT :limit;

-- name: note_ended
-- Note of ticks that their jobs have ended, so that those that have not are few. A tick and its job come in one commit.
UPDATE fencerow.schedule_ticks
SET ended = 1
WHERE (name, entity, fire_at) IN (
    SELECT old.name, old.entity, old.fire_at
    FROM fencerow.schedule_ticks AS old
    WHERE old.job_id IS NOT NULL AND NOT old.ended
      AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = old.job_id)
    ORDER BY old.name, old.entity
    LIMIT :limit
)
RETURNING 1;

-- name: note_forgotten
-- Say on the rows of schedules up to which fire their ticks are about to be forgotten, as far as these made jobs.
UPDATE fencerow.schedules AS each
SET forgotten_until = past.fire_at
FROM (
    SELECT old.name, old.entity, max(old.fire_at) AS fire_at
    FROM (
        SELECT tick.name, tick.entity, tick.fire_at
        FROM fencerow.schedule_ticks AS tick
        WHERE tick.at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
          AND tick.job_id IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = tick.job_id)
        ORDER BY tick.at
        LIMIT :limit
    ) AS old
    GROUP BY old.name, old.entity
) AS past
WHERE each.name = past.name
  AND each.entity = past.entity
  AND (each.forgotten_until IS NULL OR each.forgotten_until < past.fire_at)
RETURNING 1;

-- name: purge_ticks
-- Forget ticks of old. Guards: never one of a fire that is not past for its schedule, so that no tick makes it again;
-- never one that made a job where the row does not say so, so that no backfill does; and never one whose job lives, so
-- that the schedule knows that it overlaps.
DELETE FROM fencerow.schedule_ticks
WHERE (name, entity, fire_at) IN (
    SELECT old.name, old.entity, old.fire_at
    FROM fencerow.schedule_ticks AS old
    WHERE old.at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
      AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = old.job_id)
      AND NOT EXISTS (
          SELECT 1 FROM fencerow.schedules AS each
          WHERE each.name = old.name AND each.entity = old.entity
            AND (each.next_at <= old.fire_at
                 OR (old.job_id IS NOT NULL AND coalesce(each.forgotten_until < old.fire_at, true)))
      )
    ORDER BY old.at
    LIMIT :limit
)
RETURNING 1;
