-- Groups that read the log. Each partition of a group has one reader at a time; what decides is its fence, which goes
-- up whenever the reader changes. Leases only tell who may be replaced. An event's id is its place.

-- name: make_group
-- Make a group known. Guard: its name; one that is there is left as it is.
INSERT INTO fencerow.event_groups (name, topics, partitions, outcomes, created_at)
VALUES (:grp, :topics, :partitions, :outcomes, fencerow.now())
ON CONFLICT (name) DO NOTHING
RETURNING name;

-- name: make_cursors
-- Let every partition of a new group begin after this place.
WITH RECURSIVE parts (part) AS (
    SELECT 0 UNION ALL SELECT parts.part + 1 FROM parts WHERE parts.part + 1 < :partitions
)
INSERT INTO fencerow.event_cursors (grp, part, cursor)
SELECT :grp, parts.part, :after FROM parts WHERE true
ON CONFLICT (grp, part) DO NOTHING;

-- name: retopic_group
-- Let a group read other topics from now on. Guard: they differ.
UPDATE fencerow.event_groups
SET topics = :topics, outcomes = :outcomes
WHERE name = :grp AND topics <> :topics
RETURNING name;

-- name: read_groups
-- All groups, those behind a name, or the one of this name; at most :groups_max, if that is said.
SELECT known.name, known.topics, known.partitions, known.generation, known.created_at, known.replayed_at,
       known.alarmed_at
FROM fencerow.event_groups AS known
WHERE (:grp IS NULL OR known.name = :grp)
  AND (:after IS NULL OR known.name > :after)
ORDER BY known.name
LIMIT COALESCE(:groups_max, -1);

-- name: hold_group
-- The file's write lock holds it already.
SELECT known.partitions, known.generation FROM fencerow.event_groups AS known WHERE known.name = :grp;

-- name: place_at_time
-- The place before the first event that was published at this time or later; none: nothing is so young.
SELECT min(event.id) - 1 FROM fencerow.events AS event WHERE event.published_at >= :from_us;

-- name: renew_drainer
-- Say that this reader is alive.
INSERT INTO fencerow.event_drainers (grp, holder, name, lease_until)
VALUES (:grp, :holder, :name, fencerow.now() + CAST(:lease_s * 1000000 AS INTEGER))
ON CONFLICT (grp, holder) DO UPDATE SET lease_until = excluded.lease_until;

-- name: read_cursors
-- The partitions of a group: their readers, and whether those are alive.
SELECT held.part, held.cursor, held.fence, held.holder, held.careful,
       COALESCE(reader.lease_until > fencerow.now(), 0), held.trying
FROM fencerow.event_cursors AS held
LEFT JOIN fencerow.event_drainers AS reader ON reader.grp = held.grp AND reader.holder = held.holder
WHERE held.grp = :grp
ORDER BY held.part;

-- name: live_drainers
-- How many readers of a group are alive.
SELECT count(*) FROM fencerow.event_drainers AS reader
WHERE reader.grp = :grp AND reader.lease_until > fencerow.now();

-- name: take_cursors
-- Take partitions that nobody reads, or whose reader is dead.
-- Guard: free, or still under a reader that was found dead. The fence goes up.
UPDATE fencerow.event_cursors
SET holder = :holder, fence = fence + 1, careful = careful OR holder IS NOT NULL
WHERE grp = :grp
  AND part IN (SELECT picked.part
               FROM (SELECT free.part
                     FROM fencerow.event_cursors AS free
                     WHERE free.grp = :grp
                       AND (free.holder IS NULL OR free.holder IN (SELECT value FROM json_each(:dead)))
                     ORDER BY free.part
                     LIMIT :count) AS picked)
RETURNING part, cursor, fence, careful;

-- name: give_cursors
-- Give partitions back, at the end or because others have come. Guard: still ours.
UPDATE fencerow.event_cursors
SET holder = NULL, fence = fence + 1
WHERE grp = :grp AND part IN (SELECT value FROM json_each(:parts)) AND holder = :holder
RETURNING part;

-- name: forget_drainer
-- A reader leaves. What it still holds is free at once.
DELETE FROM fencerow.event_drainers WHERE grp = :grp AND holder = :holder;

-- name: forget_dead_drainers
-- Forget readers that died long ago. Guard: they hold nothing.
DELETE FROM fencerow.event_drainers
WHERE lease_until < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
  AND (grp, holder) NOT IN (SELECT held.grp, held.holder
                            FROM fencerow.event_cursors AS held WHERE held.holder IS NOT NULL);

-- name: read_events
-- The next events of a partition, the greatest place there is, and how far this look has seen: as many rows and
-- bytes as asked, out of so many places as may be looked at in one go.
WITH found AS MATERIALIZED (
    SELECT event.*, sum(event.bytes) OVER (ORDER BY event.id) - event.bytes AS before
    FROM (
        SELECT each.*
        FROM fencerow.events AS each
        WHERE each.id > :after
          AND each.id <= :after + :span
          AND each.bucket % :partitions = :part
          AND EXISTS (SELECT 1 FROM json_each(:topics) AS named WHERE each.topic GLOB named.value)
        ORDER BY each.id
        LIMIT :limit
    ) AS event
)
SELECT head.id, found.id, found.id, found.topic, found.key, found.data, found.headers, found.published_at,
       (SELECT count(*) FROM found)
FROM (SELECT COALESCE(max(event.id), 0) AS id FROM fencerow.events AS event) AS head
LEFT JOIN found ON found.before < :bytes_max
ORDER BY found.id;

-- name: advance_cursor
-- Move a partition on: the group is done with what lies before, or has put it aside in this transaction.
-- Guard: still this reader's, in its fence, and where it left it.
UPDATE fencerow.event_cursors
SET cursor = :cursor, careful = :careful, trying = NULL, tries = 0
WHERE grp = :grp
  AND part = :part
  AND holder = :holder
  AND fence = :fence
  AND cursor = :old
RETURNING cursor;

-- name: bound_delivery
-- There is no server that could end a transaction: whoever dies gives the file back by that.
SELECT :idle_ms;

-- name: put_aside
-- Keep events that the cursor passes undone. The cursor was moved under its guard earlier in this transaction.
INSERT INTO fencerow.event_asides (grp, part, seq, event_id, key, deliveries, due_at, parked_at, error)
SELECT :grp, :part, json_extract(aside.value, '$.seq'), json_extract(aside.value, '$.event_id'),
       json_extract(aside.value, '$.key'), json_extract(aside.value, '$.deliveries'),
       clock.now + CAST(json_extract(aside.value, '$.delay_s') * 1000000 AS INTEGER),
       CASE WHEN json_extract(aside.value, '$.parked') THEN clock.now END, json_extract(aside.value, '$.error')
FROM json_each(:asides) AS aside CROSS JOIN (SELECT fencerow.now() AS now) AS clock
WHERE true
ON CONFLICT (grp, seq) DO UPDATE
SET deliveries = excluded.deliveries, due_at = excluded.due_at, parked_at = excluded.parked_at, error = excluded.error;

-- name: try_event
-- Count that the event at the head of a partition is about to be tried: who dies of it cannot say so afterwards.
-- Guard: still this reader's, in its fence.
UPDATE fencerow.event_cursors
SET tries = CASE WHEN trying = :seq THEN tries + 1 ELSE 1 END, trying = :seq
WHERE grp = :grp
  AND part = :part
  AND holder = :holder
  AND fence = :fence
RETURNING tries;

-- name: excuse_event
-- Whoever tried this event lived: the partition was lost for another reason. Guard: it is the one that is counted.
UPDATE fencerow.event_cursors
SET trying = NULL, tries = 0
WHERE grp = :grp AND part = :part AND trying = :seq
RETURNING part;

-- name: hold_cursor
-- Whether a partition is still this reader's, in its fence. Until the transaction ends nobody can take it over.
SELECT held.cursor
FROM fencerow.event_cursors AS held
WHERE held.grp = :grp
  AND held.part = :part
  AND held.holder = :holder
  AND held.fence = :fence;

-- name: due_asides
-- Events put aside whose time has come: of each key the first alone.
SELECT aside.seq, aside.event_id, aside.deliveries, event.topic, aside.key, event.data, event.headers,
       event.published_at
FROM fencerow.event_asides AS aside
JOIN fencerow.events AS event ON event.id = aside.event_id
WHERE aside.grp = :grp
  AND aside.part = :part
  AND aside.parked_at IS NULL
  AND aside.due_at <= fencerow.now()
  AND (aside.key IS NULL OR NOT EXISTS (
        SELECT 1 FROM fencerow.event_asides AS earlier
        WHERE earlier.grp = aside.grp AND earlier.key = aside.key AND earlier.parked_at IS NULL
          AND earlier.seq < aside.seq))
ORDER BY aside.seq
LIMIT :limit;

-- name: waiting_asides
-- Of the events put aside in a partition and not parked: their keys, how many of them have failed, in how many
-- microseconds the first is due of those that wait for no other of their key, and how many there are.
SELECT json_group_array(DISTINCT aside.key) FILTER (WHERE aside.key IS NOT NULL),
       count(*) FILTER (WHERE aside.deliveries > 0),
       min(aside.due_at) FILTER (WHERE aside.key IS NULL OR NOT EXISTS (
           SELECT 1 FROM fencerow.event_asides AS earlier
           WHERE earlier.grp = aside.grp AND earlier.key = aside.key AND earlier.parked_at IS NULL
             AND earlier.seq < aside.seq)) - fencerow.now(),
       count(*)
FROM fencerow.event_asides AS aside
WHERE aside.grp = :grp AND aside.part = :part AND aside.parked_at IS NULL;

-- name: try_aside
-- Count a delivery of an event that was put aside, before it. Guard: it waits. hold_cursor came before.
UPDATE fencerow.event_asides
SET deliveries = deliveries + 1
WHERE grp = :grp AND seq = :seq AND parked_at IS NULL
RETURNING deliveries;

-- name: end_aside
-- The group is done with an event that was put aside. Guard: it waits. hold_cursor came before.
DELETE FROM fencerow.event_asides
WHERE grp = :grp AND seq = :seq AND parked_at IS NULL
RETURNING seq;

-- name: postpone_aside
-- An event that was put aside has failed again: it is due later, or parked. Guard: it waits. hold_cursor came before.
UPDATE fencerow.event_asides
SET due_at = fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER),
    parked_at = CASE WHEN :parked THEN fencerow.now() END,
    error = :error
WHERE grp = :grp AND seq = :seq AND parked_at IS NULL
RETURNING seq;

-- name: hold_aside
-- Take a counted delivery of an event that was put aside back, and let it be due later. Guard: it waits. hold_cursor came
-- before.
UPDATE fencerow.event_asides
SET deliveries = MAX(deliveries - 1, 0), due_at = fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER)
WHERE grp = :grp AND seq = :seq AND parked_at IS NULL
RETURNING seq;

-- name: redrive_events
-- Let parked events be delivered again, all of a group or those at these places. Guard: parked.
UPDATE fencerow.event_asides
SET parked_at = NULL, deliveries = 0, due_at = fencerow.now()
WHERE grp = :grp
  AND parked_at IS NOT NULL
  AND (:places IS NULL OR seq IN (SELECT value FROM json_each(:places)))
RETURNING seq;

-- name: discard_parked
-- Forget parked events: those at these places, or of this age. Guard: parked.
DELETE FROM fencerow.event_asides
WHERE (:grp IS NULL OR grp = :grp)
  AND parked_at <= fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
  AND (:places IS NULL OR seq IN (SELECT value FROM json_each(:places)))
RETURNING seq;

-- name: parked_events
-- Parked events, the oldest first.
SELECT aside.grp, aside.seq, aside.event_id, event.topic, aside.key, aside.deliveries, aside.parked_at, aside.error,
       event.data, event.headers, event.published_at
FROM fencerow.event_asides AS aside
LEFT JOIN fencerow.events AS event ON event.id = aside.event_id
WHERE aside.parked_at IS NOT NULL AND (:grp IS NULL OR aside.grp = :grp)
ORDER BY aside.parked_at, aside.seq
LIMIT :limit;

-- name: replay_cursors
-- Let a group read again what comes after this place. Its readers lose their partitions: what they have delivered
-- and not acknowledged is delivered again. Guard: a cursor only goes back.
UPDATE fencerow.event_cursors
SET cursor = MIN(cursor, :after), fence = fence + 1, holder = NULL, careful = 0, trying = NULL, tries = 0
WHERE grp = :grp
RETURNING part;

-- name: forget_asides
-- What was put aside after this place is read again from the log.
DELETE FROM fencerow.event_asides WHERE grp = :grp AND seq > :after;

-- name: begin_generation
-- Note the replay.
UPDATE fencerow.event_groups
SET generation = generation + 1, replayed_at = fencerow.now(), alarmed_at = NULL
WHERE name = :grp
RETURNING generation;

-- name: remove_group
-- Forget a group, what it has put aside, its cursors and its readers.
DELETE FROM fencerow.event_asides WHERE grp = :grp;
DELETE FROM fencerow.event_cursors WHERE grp = :grp;
DELETE FROM fencerow.event_drainers WHERE grp = :grp;
DELETE FROM fencerow.event_groups WHERE name = :grp
RETURNING name;
