-- How far groups are behind, and what of the log may go.

-- fragment: readable topics
-- Of a row that was changed by hand they may be no list, or hold what no pattern can: then it reads nothing, and the others
-- are looked at all the same.
CASE WHEN json_typeof(known.topics) = 'array' AND position('\' IN CAST(known.topics AS text)) = 0
     THEN known.topics ELSE '[]' END

-- name: group_lags
-- Each group, or those behind a name, at most :groups_max if that is said. Of each:
-- the head of the log, its rearmost cursor, how many events it has still to read (looked at up to so many
-- in each partition), when the first of them was published, what is put aside and parked (counted up to so many each), and its living readers; and
-- how many of the events have no place yet (looked at up to so many), with the first of these. They are read by place,
-- so without one they are as unread as any other.
WITH unplaced AS MATERIALIZED (
    SELECT event.id, event.topic, event.bucket, event.published_at
    FROM fencerow.events AS event
    WHERE event.id > (SELECT COALESCE(max(marks.settled), 0) FROM fencerow.event_marks AS marks)
      AND event.seq IS NULL
    ORDER BY event.id
    LIMIT CAST(:look AS bigint)
)
SELECT known.name,
       GREATEST((SELECT COALESCE(max(event.seq), 0) FROM fencerow.events AS event WHERE event.seq IS NOT NULL),
                (SELECT COALESCE(max(marks.trimmed), 0) FROM fencerow.event_marks AS marks)),
       min(held.cursor),
       CAST(sum(ahead.events + coming.events) AS bigint),
       fencerow.us(LEAST(min(ahead.first_at), min(coming.first_at))),
       (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.event_asides AS aside WHERE aside.grp = known.name AND aside.parked_at IS NULL
              LIMIT CAST(:look AS bigint)) AS few),
       (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.event_asides AS aside WHERE aside.grp = known.name AND aside.parked_at IS NOT NULL
              LIMIT CAST(:look AS bigint)) AS few),
       (SELECT count(*) FROM fencerow.event_drainers AS reader
        WHERE reader.grp = known.name AND reader.lease_until > (SELECT fencerow.now())),
       fencerow.us((SELECT fencerow.now())),
       fencerow.us(known.alarmed_at),
       CAST(sum(coming.events) AS bigint),
       fencerow.us(min(coming.first_at))
FROM fencerow.event_groups AS known
JOIN fencerow.event_cursors AS held ON held.grp = known.name
CROSS JOIN LATERAL (
    SELECT array_agg(replace(replace(named.topic, '_', '\_'), '*', '%')) AS likes
    FROM json_array_elements_text({{readable topics}}) AS named (topic)
) AS patterns
CROSS JOIN LATERAL (
    SELECT count(*) AS events, min(unread.published_at) AS first_at
    FROM (
        SELECT event.published_at
        FROM fencerow.events AS event
        WHERE event.seq > held.cursor
          AND event.bucket % known.partitions = held.part
          AND event.topic LIKE ANY(patterns.likes)
        ORDER BY event.seq
        LIMIT CAST(:look AS bigint)
    ) AS unread
) AS ahead
CROSS JOIN LATERAL (
    SELECT count(*) AS events, min(event.published_at) AS first_at
    FROM unplaced AS event
    WHERE event.bucket % known.partitions = held.part AND event.topic LIKE ANY(patterns.likes)
) AS coming
WHERE (CAST(:grp AS text) IS NULL OR known.name = :grp)
  AND known.name = ANY(ARRAY(
      SELECT page.name
      FROM fencerow.event_groups AS page
      WHERE CAST(:after AS text) IS NULL OR page.name > :after
      ORDER BY page.name
      LIMIT CAST(:groups_max AS bigint)))
GROUP BY known.name
ORDER BY known.name;

-- name: alarm_group
-- Note that a group was told what it will lose. Guard: the first alarm stands.
UPDATE fencerow.event_groups AS known SET alarmed_at = (SELECT fencerow.now())
WHERE known.name = :grp AND known.alarmed_at IS NULL
RETURNING known.name;

-- name: calm_group
-- A group has caught up. Guard: there was an alarm.
UPDATE fencerow.event_groups AS known SET alarmed_at = NULL
WHERE known.name = :grp AND known.alarmed_at IS NOT NULL
RETURNING known.name;

-- name: trim_events
-- Remove some of the oldest events: those that every group has read, by their age or beyond the number to keep; and
-- those that a group has not read, past a greater age or beyond that number, if it was told long enough before.
-- Guard: nothing that is put aside or parked; nothing unread by a group without an old alarm.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
bound AS MATERIALIZED (
    SELECT min(held.cursor) AS read_by_all,
           min(held.cursor) FILTER (
               WHERE known.alarmed_at IS NULL
                  OR known.alarmed_at > clock.now - fencerow.seconds(CAST(:told_s AS double precision))
           ) AS read_by_untold
    FROM fencerow.event_cursors AS held JOIN fencerow.event_groups AS known ON known.name = held.grp CROSS JOIN clock
),
head AS MATERIALIZED (
    SELECT COALESCE(max(event.seq), 0) AS seq FROM fencerow.events AS event WHERE event.seq IS NOT NULL
),
oldest AS MATERIALIZED (
    SELECT event.id, event.seq, event.published_at
    FROM fencerow.events AS event
    WHERE event.seq IS NOT NULL
      AND event.seq NOT IN (SELECT aside.seq FROM fencerow.event_asides AS aside)  -- hashed, whatever the planner knows
    ORDER BY event.seq
    LIMIT CAST(:limit AS bigint)
)
DELETE FROM fencerow.events AS gone
USING oldest, bound, head, clock
WHERE gone.id = ANY(ARRAY(SELECT oldest.id FROM oldest))
  AND gone.id = oldest.id
  AND ((oldest.seq <= COALESCE(bound.read_by_all, head.seq)
        AND (oldest.published_at < clock.now - fencerow.seconds(CAST(:age_s AS double precision))
             OR oldest.seq <= head.seq - CAST(:keep AS bigint)))
    OR (oldest.seq <= COALESCE(bound.read_by_untold, head.seq)
        AND (oldest.published_at < clock.now - fencerow.seconds(CAST(:unread_age_s AS double precision))
             OR oldest.seq <= head.seq - CAST(:keep AS bigint))))
RETURNING gone.seq;

-- name: note_trimmed
-- Note the greatest place that was removed. Guard: the mark never goes back.
INSERT INTO fencerow.event_marks (trimmed) VALUES (CAST(:trimmed AS bigint))
ON CONFLICT (one) DO UPDATE SET trimmed = GREATEST(event_marks.trimmed, EXCLUDED.trimmed);

-- name: event_rate
-- The head of the log, and when the event so many places before it was published: how fast the log grows.
SELECT head.seq, head.seq - before.seq, fencerow.us(head.published_at) - fencerow.us(before.published_at),
       (SELECT fencerow.us(min(first.published_at)) FROM (
            SELECT event.published_at FROM fencerow.events AS event
            WHERE event.seq IS NOT NULL ORDER BY event.seq LIMIT 1) AS first),
       fencerow.us((SELECT fencerow.now()))
FROM (SELECT event.seq, event.published_at FROM fencerow.events AS event
      WHERE event.seq IS NOT NULL ORDER BY event.seq DESC LIMIT 1) AS head
JOIN LATERAL (SELECT event.seq, event.published_at FROM fencerow.events AS event
              WHERE event.seq >= head.seq - CAST(:look AS bigint) ORDER BY event.seq LIMIT 1) AS before ON true;

-- name: show_event
-- One event by its id or its place.
SELECT event.id, event.seq, event.topic, event.key, CAST(event.data AS text), CAST(event.headers AS text),
       fencerow.us(event.published_at)
FROM fencerow.events AS event
WHERE event.seq = CAST(:seq AS bigint) OR event.id = CAST(:event_id AS bigint)
LIMIT 1;
