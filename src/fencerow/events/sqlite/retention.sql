-- How far groups are behind, and what of the log may go.

-- fragment: readable topics
-- Of a row that was changed by hand they may be no JSON: then it reads nothing, and the others are looked at all the same.
iif(json_valid(known.topics), known.topics, '[]')

-- name: group_lags
-- Each group, or those behind a name, at most :groups_max if that is said. Of each:
-- the head of the log, its rearmost cursor, how many events it has still to read (looked at up to so many
-- for the whole group), when the first of them was published, what is put aside and parked (counted up to so many each), and its living readers.
-- Every event has its place from the beginning.
SELECT known.name,
       MAX(COALESCE((SELECT max(event.id) FROM fencerow.events AS event), 0),
           COALESCE((SELECT max(marks.trimmed) FROM fencerow.event_marks AS marks), 0)),
       (SELECT min(held.cursor) FROM fencerow.event_cursors AS held WHERE held.grp = known.name),
       (SELECT count(*) FROM (
            SELECT 1 FROM fencerow.event_cursors AS held JOIN fencerow.events AS event ON event.id > held.cursor
            WHERE held.grp = known.name AND event.bucket % known.partitions = held.part
              AND EXISTS (SELECT 1 FROM json_each({{readable topics}}) AS named WHERE event.topic GLOB named.value)
            LIMIT :look)),
       (SELECT min(event.published_at)
        FROM fencerow.event_cursors AS held JOIN fencerow.events AS event ON event.id > held.cursor
        WHERE held.grp = known.name AND event.bucket % known.partitions = held.part
          AND EXISTS (SELECT 1 FROM json_each({{readable topics}}) AS named WHERE event.topic GLOB named.value)),
       (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.event_asides AS aside WHERE aside.grp = known.name AND aside.parked_at IS NULL
              LIMIT :look)),
       (SELECT count(*)
        FROM (SELECT 1 FROM fencerow.event_asides AS aside WHERE aside.grp = known.name AND aside.parked_at IS NOT NULL
              LIMIT :look)),
       (SELECT count(*) FROM fencerow.event_drainers AS reader
        WHERE reader.grp = known.name AND reader.lease_until > fencerow.now()),
       fencerow.now(),
       known.alarmed_at,
       0,
       NULL
FROM fencerow.event_groups AS known
WHERE (:grp IS NULL OR known.name = :grp)
  AND known.name IN (
      SELECT page.name
      FROM fencerow.event_groups AS page
      WHERE :after IS NULL OR page.name > :after
      ORDER BY page.name
      LIMIT COALESCE(:groups_max, -1))
ORDER BY known.name;

-- name: alarm_group
-- Note that a group was told what it will lose. Guard: the first alarm stands.
UPDATE fencerow.event_groups SET alarmed_at = fencerow.now()
WHERE name = :grp AND alarmed_at IS NULL
RETURNING name;

-- name: calm_group
-- A group has caught up. Guard: there was an alarm.
UPDATE fencerow.event_groups SET alarmed_at = NULL
WHERE name = :grp AND alarmed_at IS NOT NULL
RETURNING name;

-- name: trim_events
-- Remove some of the oldest events: those that every group has read, by their age or beyond the number to keep; and
-- those that a group has not read, past a greater age or beyond that number, if it was told long enough before.
-- Guard: nothing that is put aside or parked; nothing unread by a group without an old alarm.
DELETE FROM fencerow.events
WHERE id IN (
    SELECT oldest.id
    FROM (
        SELECT event.id, event.published_at
        FROM fencerow.events AS event
        WHERE NOT EXISTS (SELECT 1 FROM fencerow.event_asides AS aside WHERE aside.seq = event.id)
        ORDER BY event.id
        LIMIT :limit
    ) AS oldest
    CROSS JOIN (SELECT COALESCE(max(event.id), 0) AS id FROM fencerow.events AS event) AS head
    CROSS JOIN (
        SELECT min(held.cursor) AS read_by_all,
               min(CASE WHEN known.alarmed_at IS NULL
                          OR known.alarmed_at > fencerow.now() - CAST(:told_s * 1000000 AS INTEGER)
                        THEN held.cursor END) AS read_by_untold
        FROM fencerow.event_cursors AS held JOIN fencerow.event_groups AS known ON known.name = held.grp
    ) AS bound
    WHERE (oldest.id <= COALESCE(bound.read_by_all, head.id)
           AND (oldest.published_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
                OR oldest.id <= head.id - :keep))
       OR (oldest.id <= COALESCE(bound.read_by_untold, head.id)
           AND (oldest.published_at < fencerow.now() - CAST(:unread_age_s * 1000000 AS INTEGER)
                OR oldest.id <= head.id - :keep))
)
RETURNING id;

-- name: note_trimmed
-- Note the greatest place that was removed. Guard: the mark never goes back.
INSERT INTO fencerow.event_marks (one, trimmed) VALUES (1, :trimmed)
ON CONFLICT (one) DO UPDATE SET trimmed = MAX(trimmed, excluded.trimmed);

-- name: event_rate
-- The head of the log, and when the event so many places before it was published: how fast the log grows.
SELECT head.id, head.id - before.id, head.published_at - before.published_at,
       (SELECT event.published_at FROM fencerow.events AS event ORDER BY event.id LIMIT 1), fencerow.now()
FROM (SELECT event.id, event.published_at FROM fencerow.events AS event ORDER BY event.id DESC LIMIT 1) AS head
JOIN fencerow.events AS before
  ON before.id = (SELECT min(event.id) FROM fencerow.events AS event WHERE event.id >= head.id - :look);

-- name: show_event
-- One event by its id or its place.
SELECT event.id, event.id, event.topic, event.key, event.data, event.headers, event.published_at
FROM fencerow.events AS event
WHERE event.id = :seq OR event.id = :event_id
LIMIT 1;
