-- Ticks: what is due fires once, whichever worker sees it first. Three guards stand one behind the other: the lock of
-- the row, the primary key of the ticks, and the look at what was seen when the row is moved on. Each would do alone for
-- two ticks that meet; the lock is also what a pause, a change and a removal wait for.
-- OFFSET 0 has the server look up the job of each tick by its id: joined, each tick is compared with each job, where the planner
-- believes that there are none. For the same reason ticks that were found are changed at their places (ctid).

-- name: due_schedules
-- Lock what is due, but for what this worker cannot compute; with :only, of one row.
-- Guard: whoever locked a row first has it; a row that changed meanwhile is looked at again, as it is now.
SELECT each.name, each.entity, each.definition, each.version, fencerow.us(each.next_at),
       fencerow.us((SELECT fencerow.now()))
FROM fencerow.schedules AS each
WHERE each.paused_at IS NULL
  AND each.next_at <= (SELECT fencerow.now())
  AND NOT (each.name || '/' || each.entity = ANY(CAST(:besides AS text[])))
  AND (CAST(:only AS text) IS NULL OR each.name || '/' || each.entity = CAST(:only AS text))
ORDER BY each.next_at, each.name, each.entity
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: due_keys
-- What a tick would look at, where one of those rows made it fail. Reads only.
SELECT each.name, each.entity
FROM fencerow.schedules AS each
WHERE each.paused_at IS NULL
  AND each.next_at <= (SELECT fencerow.now())
  AND NOT (each.name || '/' || each.entity = ANY(CAST(:besides AS text[])))
ORDER BY each.next_at, each.name, each.entity
LIMIT :limit;

-- name: next_fire
-- When the next one is due, and the time now.
SELECT (
    SELECT fencerow.us(each.next_at)
    FROM fencerow.schedules AS each
    WHERE each.paused_at IS NULL
      AND each.next_at IS NOT NULL
      AND NOT (each.name || '/' || each.entity = ANY(CAST(:besides AS text[])))
    ORDER BY each.next_at
    LIMIT 1
), fencerow.us(fencerow.now());

-- fragment: has not ended
-- Nobody claims what has expired, and the next sweep ends it: it has ended for whoever asks.
(job.state = 'running' OR COALESCE(job.expires_at > (SELECT fencerow.now()), true))

-- name: overlapping
-- Which of these have a job that has not ended: one of which nobody has seen the end, or of the latest ticks, whose job
-- may have been revived since. A statement of its own, after the lock of the row: what the tick before submitted is seen.
SELECT asked.name, asked.entity
FROM json_to_recordset(CAST(:asked AS json)) AS asked (name text, entity text)
WHERE EXISTS (
    SELECT 1 FROM fencerow.jobs AS job
    WHERE job.id = ANY(ARRAY(
        SELECT tick.job_id FROM fencerow.schedule_ticks AS tick
        WHERE tick.name = asked.name AND tick.entity = asked.entity AND tick.job_id IS NOT NULL
        ORDER BY tick.fire_at DESC
        LIMIT 20
    ))
      AND {{has not ended}}
) OR EXISTS (
    SELECT 1 FROM fencerow.schedule_ticks AS tick
    WHERE tick.name = asked.name AND tick.entity = asked.entity AND tick.job_id IS NOT NULL AND NOT tick.ended
      AND EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = tick.job_id AND {{has not ended}} OFFSET 0)
);

-- name: insert_ticks
-- Decide fires. Guard: the primary key; one that was decided before is not returned, and so makes no job.
INSERT INTO fencerow.schedule_ticks (name, entity, fire_at, made, job_id, left_out, at, made_by)
SELECT given.name, given.entity, fencerow.at(given.fire_us), given.made, given.job_id, given.left_out,
       (SELECT fencerow.now()), given.made_by
FROM json_to_recordset(CAST(:ticks AS json)) AS given (
    name text, entity text, fire_us bigint, made text, job_id uuid, left_out integer, made_by text
)
ON CONFLICT (name, entity, fire_at) DO NOTHING
RETURNING name, entity, fencerow.us(fire_at);

-- name: make_up_ticks
-- Fires of the past that a person wants made, also those that were decided without a job.
-- Guard: the primary key, and that no job was made: a fire that has one is not returned, and so makes none.
INSERT INTO fencerow.schedule_ticks AS tick (name, entity, fire_at, made, job_id, left_out, at, made_by)
SELECT given.name, given.entity, fencerow.at(given.fire_us), given.made, given.job_id, given.left_out,
       (SELECT fencerow.now()), given.made_by
FROM json_to_recordset(CAST(:ticks AS json)) AS given (
    name text, entity text, fire_us bigint, made text, job_id uuid, left_out integer, made_by text
)
ON CONFLICT (name, entity, fire_at) DO UPDATE
SET made = excluded.made, job_id = excluded.job_id, at = excluded.at, made_by = excluded.made_by
WHERE tick.job_id IS NULL
RETURNING tick.name, tick.entity, fencerow.us(tick.fire_at);

-- name: fires_with_job
-- Which fires of a stretch of time have made a job.
SELECT tick.entity, fencerow.us(tick.fire_at)
FROM fencerow.schedule_ticks AS tick
WHERE tick.name = :name
  AND (CAST(:entity AS text) IS NULL OR tick.entity = CAST(:entity AS text))
  AND tick.fire_at >= fencerow.at(:start_us) AND tick.fire_at < fencerow.at(:end_us)
  AND tick.job_id IS NOT NULL;

-- name: advance_schedules
-- Move rows on to their next fire. Guard: they are as they were seen; and no row ever goes back.
UPDATE fencerow.schedules AS each
SET next_at = greatest(fencerow.at(given.next_us), each.next_at),
    last_at = coalesce(greatest(fencerow.at(given.last_us), each.last_at), each.last_at),
    last_job_id = coalesce(given.job_id, each.last_job_id),
    zones = CAST(:zones AS text),
    trouble = NULL
FROM json_to_recordset(CAST(:moves AS json)) AS given (
    name text, entity text, seen_us bigint, version bigint, next_us bigint, last_us bigint, job_id uuid
)
WHERE each.name = given.name
  AND each.entity = given.entity
  AND each.next_at = fencerow.at(given.seen_us)
  AND each.version = given.version
RETURNING each.name, each.entity;

-- name: note_run
-- A person had this one run now. The next fire stays where it is.
UPDATE fencerow.schedules AS each
SET last_at = greatest(fencerow.at(given.last_us), each.last_at), last_job_id = given.job_id
FROM json_to_recordset(CAST(:runs AS json)) AS given (name text, entity text, last_us bigint, job_id uuid)
WHERE each.name = given.name AND each.entity = given.entity;

-- name: note_troubles
-- Why these cannot fire in some worker, or in none for now. Guard: it is news. Rows that somebody has locked are left for
-- the next time: two workers who note the same ones in another order would wait for each other in a ring.
UPDATE fencerow.schedules AS each
SET trouble = news.trouble
FROM json_to_recordset(CAST(:troubles AS json)) AS news (name text, entity text, trouble text)
WHERE each.ctid = ANY(ARRAY(
        SELECT standing.ctid
        FROM json_to_recordset(CAST(:troubles AS json)) AS given (name text, entity text, trouble text)
        JOIN fencerow.schedules AS standing ON standing.name = given.name AND standing.entity = given.entity
        WHERE standing.trouble IS DISTINCT FROM given.trouble
        FOR UPDATE OF standing SKIP LOCKED
    ))
  AND each.name = news.name
  AND each.entity = news.entity;

-- name: read_ticks
-- The latest ticks of a schedule or of one entity, with the state of the job that each made.
SELECT tick.entity, fencerow.us(tick.fire_at), tick.made, tick.job_id, tick.left_out, fencerow.us(tick.at),
       tick.made_by, (SELECT job.state FROM fencerow.all_jobs AS job WHERE job.id = tick.job_id)
FROM fencerow.schedule_ticks AS tick
WHERE tick.name = :name
  AND (CAST(:entity AS text) IS NULL OR tick.entity = CAST(:entity AS text))
ORDER BY tick.fire_at DESC, tick.entity
LIMIT :limit;

-- name: note_ended
-- Note of ticks that their jobs have ended, so that those that have not are few. A tick and its job come in one commit.
UPDATE fencerow.schedule_ticks AS tick
SET ended = true
WHERE tick.ctid = ANY(ARRAY(
    SELECT old.ctid
    FROM fencerow.schedule_ticks AS old
    WHERE old.job_id IS NOT NULL AND NOT old.ended
      AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = old.job_id OFFSET 0)
    ORDER BY old.name, old.entity
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
))
RETURNING 1;

-- name: note_forgotten
-- Say on the rows of schedules up to which fire their ticks are about to be forgotten, as far as these made jobs.
-- Rows that somebody has locked keep their ticks for now: who waits here while a backfill waits for a tick would never end.
UPDATE fencerow.schedules AS each
SET forgotten_until = last.fire_at
FROM (
    SELECT standing.place, past.fire_at
    FROM (
        SELECT old.name, old.entity, max(old.fire_at) AS fire_at
        FROM (
            SELECT tick.name, tick.entity, tick.fire_at
            FROM fencerow.schedule_ticks AS tick
            WHERE tick.at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
              AND tick.job_id IS NOT NULL
              AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = tick.job_id OFFSET 0)
            ORDER BY tick.at
            LIMIT :limit
        ) AS old
        GROUP BY old.name, old.entity
    ) AS past
    CROSS JOIN LATERAL (
        SELECT known.ctid AS place
        FROM fencerow.schedules AS known
        WHERE known.name = past.name AND known.entity = past.entity
          AND (known.forgotten_until IS NULL OR known.forgotten_until < past.fire_at)
        OFFSET 0
        FOR UPDATE SKIP LOCKED
    ) AS standing
) AS last
WHERE each.ctid = last.place
RETURNING 1;

-- name: purge_ticks
-- Forget ticks of old. Guards: never one of a fire that is not past for its schedule, so that no tick makes it again;
-- never one that made a job where the row does not say so, so that no backfill does; and never one whose job lives, so
-- that the schedule knows that it overlaps.
DELETE FROM fencerow.schedule_ticks AS tick
WHERE tick.ctid = ANY(ARRAY(
    SELECT old.ctid
    FROM fencerow.schedule_ticks AS old
    WHERE old.at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
      AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = old.job_id OFFSET 0)
      AND NOT EXISTS (
          SELECT 1 FROM fencerow.schedules AS each
          WHERE each.name = old.name AND each.entity = old.entity
            AND (each.next_at <= old.fire_at
                 OR (old.job_id IS NOT NULL AND coalesce(each.forgotten_until < old.fire_at, true)))
          OFFSET 0
      )
    ORDER BY old.at
    LIMIT :limit
))
RETURNING 1;
