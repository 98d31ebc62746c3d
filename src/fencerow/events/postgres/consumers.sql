-- Groups that read the log. Each partition of a group has one reader at a time; what decides is its fence, which goes
-- up whenever the reader changes. Leases only tell who may be replaced.

-- name: make_group
-- Make a group known. Guard: its name; one that is there is left as it is.
INSERT INTO fencerow.event_groups (name, topics, partitions, outcomes, created_at)
VALUES (:grp, CAST(CAST(:topics AS text) AS json), CAST(:partitions AS integer), CAST(:outcomes AS boolean), (SELECT fencerow.now()))
ON CONFLICT (name) DO NOTHING
RETURNING name;

-- name: make_cursors
-- Let every partition of a new group begin after this place.
INSERT INTO fencerow.event_cursors (grp, part, cursor)
SELECT :grp, parts.part, CAST(:after AS bigint)
FROM generate_series(0, CAST(:partitions AS integer) - 1) AS parts (part)
ON CONFLICT (grp, part) DO NOTHING;

-- name: retopic_group
-- Let a group read other topics from now on. Guard: they differ.
UPDATE fencerow.event_groups AS known
SET topics = CAST(CAST(:topics AS text) AS json), outcomes = CAST(:outcomes AS boolean)
WHERE known.name = :grp AND CAST(known.topics AS text) <> CAST(:topics AS text)
RETURNING known.name;

-- name: read_groups
-- All groups, those behind a name, or the one of this name; at most :groups_max, if that is said.
SELECT known.name, CAST(known.topics AS text), known.partitions, known.generation, fencerow.us(known.created_at),
       fencerow.us(known.replayed_at), fencerow.us(known.alarmed_at)
FROM fencerow.event_groups AS known
WHERE (CAST(:grp AS text) IS NULL OR known.name = :grp)
  AND (CAST(:after AS text) IS NULL OR known.name > :after)
ORDER BY known.name
LIMIT CAST(:groups_max AS bigint);

-- name: hold_group
-- Lock a group's row until the end of the transaction: what changes all its partitions takes turns.
SELECT known.partitions, known.generation FROM fencerow.event_groups AS known WHERE known.name = :grp FOR UPDATE;

-- name: place_at_time
-- The place before the first event that was published at this time or later; none: nothing is so young.
SELECT min(event.seq) - 1
FROM fencerow.events AS event
WHERE event.seq IS NOT NULL AND event.published_at >= fencerow.at(CAST(:from_us AS bigint));

-- name: renew_drainer
-- Say that this reader is alive.
INSERT INTO fencerow.event_drainers (grp, holder, name, lease_until)
VALUES (:grp, CAST(:holder AS uuid), :name,
        (SELECT fencerow.now()) + fencerow.seconds(CAST(:lease_s AS double precision)))
ON CONFLICT (grp, holder) DO UPDATE SET lease_until = EXCLUDED.lease_until;

-- name: read_cursors
-- The partitions of a group: their readers, and whether those are alive.
SELECT held.part, held.cursor, held.fence, CAST(held.holder AS text), held.careful,
       COALESCE(reader.lease_until > (SELECT fencerow.now()), false), held.trying
FROM fencerow.event_cursors AS held
LEFT JOIN fencerow.event_drainers AS reader ON reader.grp = held.grp AND reader.holder = held.holder
WHERE held.grp = :grp
ORDER BY held.part;

-- name: live_drainers
-- How many readers of a group are alive.
SELECT count(*) FROM fencerow.event_drainers AS reader
WHERE reader.grp = :grp AND reader.lease_until > (SELECT fencerow.now());

-- name: take_cursors
-- Take partitions that nobody reads, or whose reader is dead. Dead ones are named by value: whoever has come since
-- they were looked for is not among them.
-- Guard: free, or still under a reader that was found dead. The fence goes up.
UPDATE fencerow.event_cursors AS taken
SET holder = CAST(:holder AS uuid), fence = taken.fence + 1, careful = taken.careful OR taken.holder IS NOT NULL
WHERE taken.grp = :grp
  AND taken.part = ANY(ARRAY(
        SELECT free.part
        FROM fencerow.event_cursors AS free
        WHERE free.grp = :grp
          AND (free.holder IS NULL OR free.holder = ANY(CAST(:dead AS uuid[])))
        ORDER BY free.part
        LIMIT CAST(:count AS bigint)
        FOR UPDATE SKIP LOCKED
    ))
  AND (taken.holder IS NULL OR taken.holder = ANY(CAST(:dead AS uuid[])))
RETURNING taken.part, taken.cursor, taken.fence, taken.careful;

-- name: give_cursors
-- Give partitions back, at the end or because others have come. Guard: still ours.
UPDATE fencerow.event_cursors AS given
SET holder = NULL, fence = given.fence + 1
WHERE given.grp = :grp AND given.part = ANY(CAST(:parts AS integer[])) AND given.holder = CAST(:holder AS uuid)
RETURNING given.part;

-- name: forget_drainer
-- A reader leaves. What it still holds is free at once.
DELETE FROM fencerow.event_drainers AS reader WHERE reader.grp = :grp AND reader.holder = CAST(:holder AS uuid);

-- name: forget_dead_drainers
-- Forget readers that died long ago. Guard: they hold nothing.
DELETE FROM fencerow.event_drainers AS reader
WHERE reader.lease_until < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
  AND NOT EXISTS (SELECT 1 FROM fencerow.event_cursors AS held
                  WHERE held.grp = reader.grp AND held.holder = reader.holder
                  OFFSET 0);

-- name: read_events
-- The next events of a partition, the greatest place there is, and how far this look has seen: as many rows and
-- bytes as asked, out of so many places as may be looked at in one go.
WITH head AS MATERIALIZED (
    SELECT COALESCE(max(event.seq), 0) AS seq FROM fencerow.events AS event WHERE event.seq IS NOT NULL
),
patterns AS MATERIALIZED (
    SELECT array_agg(replace(replace(named.topic, '_', '\_'), '*', '%')) AS likes
    FROM unnest(CAST(:topics AS text[])) AS named (topic)
),
found AS MATERIALIZED (
    SELECT event.id, event.seq, event.topic, event.key, event.data, event.headers, event.published_at,
           sum(event.bytes) OVER (ORDER BY event.seq) - event.bytes AS before
    FROM (
        SELECT each.*
        FROM fencerow.events AS each
        WHERE each.seq > CAST(:after AS bigint)
          AND each.seq <= CAST(:after AS bigint) + CAST(:span AS bigint)
          AND each.bucket % CAST(:partitions AS integer) = CAST(:part AS integer)
          AND each.topic LIKE ANY(CAST((SELECT patterns.likes FROM patterns) AS text[]))
        ORDER BY each.seq
        LIMIT CAST(:limit AS bigint)
    ) AS event
)
SELECT head.seq, found.id, found.seq, found.topic, found.key, CAST(found.data AS text), CAST(found.headers AS text),
       fencerow.us(found.published_at), (SELECT count(*) FROM found)
FROM head LEFT JOIN found ON found.before < CAST(:bytes_max AS bigint)
ORDER BY found.seq;

-- name: advance_cursor
-- Move a partition on: the group is done with what lies before, or has put it aside in this transaction.
-- Guard: still this reader's, in its fence, and where it left it.
UPDATE fencerow.event_cursors AS held
SET cursor = CAST(:cursor AS bigint), careful = CAST(:careful AS boolean), trying = NULL, tries = 0
WHERE held.grp = :grp
  AND held.part = CAST(:part AS integer)
  AND held.holder = CAST(:holder AS uuid)
  AND held.fence = CAST(:fence AS bigint)
  AND held.cursor = CAST(:old AS bigint)
RETURNING held.cursor;

-- name: bound_delivery
-- Let the server end this transaction when its reader has frozen: what it locks, whoever delivers the event next may
-- need. The setting ends with the transaction. One that the operator has made for idle transactions stays.
SELECT set_config(
        'idle_in_transaction_session_timeout',
        CASE
            WHEN current_setting('idle_in_transaction_session_timeout') <> '0'
                THEN current_setting('idle_in_transaction_session_timeout')
            ELSE CAST(CAST(:idle_ms AS bigint) AS text)
        END,
        true
    );

-- name: put_aside
-- Keep events that the cursor passes undone. The cursor was moved under its guard earlier in this transaction.
INSERT INTO fencerow.event_asides (grp, part, seq, event_id, key, deliveries, due_at, parked_at, error)
SELECT :grp, CAST(:part AS integer), aside.seq, aside.event_id, aside.key, aside.deliveries,
       clock.now + fencerow.seconds(aside.delay_s), CASE WHEN aside.parked THEN clock.now END, CAST(aside.error AS json)
FROM json_to_recordset(CAST(:asides AS json)) AS aside (
    seq bigint, event_id bigint, key text, deliveries integer, delay_s double precision, parked boolean, error text
)
CROSS JOIN (SELECT fencerow.now() AS now) AS clock
ON CONFLICT (grp, seq) DO UPDATE
SET deliveries = EXCLUDED.deliveries, due_at = EXCLUDED.due_at, parked_at = EXCLUDED.parked_at, error = EXCLUDED.error;

-- name: try_event
-- Count that the event at the head of a partition is about to be tried: who dies of it cannot say so afterwards.
-- Guard: still this reader's, in its fence.
UPDATE fencerow.event_cursors AS held
SET trying = CAST(:seq AS bigint),
    tries = CASE WHEN held.trying = CAST(:seq AS bigint) THEN held.tries + 1 ELSE 1 END
WHERE held.grp = :grp
  AND held.part = CAST(:part AS integer)
  AND held.holder = CAST(:holder AS uuid)
  AND held.fence = CAST(:fence AS bigint)
RETURNING held.tries;

-- name: excuse_event
-- Whoever tried this event lived: the partition was lost for another reason. Guard: it is the one that is counted.
UPDATE fencerow.event_cursors AS held
SET trying = NULL, tries = 0
WHERE held.grp = :grp AND held.part = CAST(:part AS integer) AND held.trying = CAST(:seq AS bigint)
RETURNING held.part;

-- name: hold_cursor
-- Whether a partition is still this reader's, in its fence. Until the transaction ends nobody can take it over.
SELECT held.cursor
FROM fencerow.event_cursors AS held
WHERE held.grp = :grp
  AND held.part = CAST(:part AS integer)
  AND held.holder = CAST(:holder AS uuid)
  AND held.fence = CAST(:fence AS bigint)
FOR UPDATE;

-- name: due_asides
-- Events put aside whose time has come: of each key the first alone.
SELECT aside.seq, aside.event_id, aside.deliveries, event.topic, aside.key, CAST(event.data AS text),
       CAST(event.headers AS text), fencerow.us(event.published_at)
FROM fencerow.event_asides AS aside
JOIN fencerow.events AS event ON event.id = aside.event_id
WHERE aside.grp = :grp
  AND aside.part = CAST(:part AS integer)
  AND aside.parked_at IS NULL
  AND aside.due_at <= (SELECT fencerow.now())
  AND (aside.key IS NULL OR NOT EXISTS (
        SELECT 1 FROM fencerow.event_asides AS earlier
        WHERE earlier.grp = aside.grp AND earlier.key = aside.key AND earlier.parked_at IS NULL
          AND earlier.seq < aside.seq))
ORDER BY aside.seq
LIMIT CAST(:limit AS bigint);

-- name: waiting_asides
-- Of the events put aside in a partition and not parked: their keys, how many of them have failed, in how many
-- microseconds the first is due of those that wait for no other of their key, and how many there are.
SELECT CAST(json_agg(DISTINCT aside.key) FILTER (WHERE aside.key IS NOT NULL) AS text),
       count(*) FILTER (WHERE aside.deliveries > 0),
       fencerow.us(min(aside.due_at) FILTER (WHERE aside.key IS NULL OR NOT EXISTS (
           SELECT 1 FROM fencerow.event_asides AS earlier
           WHERE earlier.grp = aside.grp AND earlier.key = aside.key AND earlier.parked_at IS NULL
             AND earlier.seq < aside.seq))) - fencerow.us((SELECT fencerow.now())),
       count(*)
FROM fencerow.event_asides AS aside
WHERE aside.grp = :grp AND aside.part = CAST(:part AS integer) AND aside.parked_at IS NULL;

-- name: try_aside
-- Count a delivery of an event that was put aside, before it. Guard: it waits. hold_cursor came before.
UPDATE fencerow.event_asides AS aside
SET deliveries = aside.deliveries + 1
WHERE aside.grp = :grp AND aside.seq = CAST(:seq AS bigint) AND aside.parked_at IS NULL
RETURNING aside.deliveries;

-- name: end_aside
-- The group is done with an event that was put aside. Guard: it waits. hold_cursor came before.
DELETE FROM fencerow.event_asides AS aside
WHERE aside.grp = :grp AND aside.seq = CAST(:seq AS bigint) AND aside.parked_at IS NULL
RETURNING aside.seq;

-- name: postpone_aside
-- An event that was put aside has failed again: it is due later, or parked. Guard: it waits. hold_cursor came before.
UPDATE fencerow.event_asides AS aside
SET due_at = clock.now + fencerow.seconds(CAST(:delay_s AS double precision)),
    parked_at = CASE WHEN CAST(:parked AS boolean) THEN clock.now END,
    error = CAST(:error AS json)
FROM (SELECT fencerow.now() AS now) AS clock
WHERE aside.grp = :grp AND aside.seq = CAST(:seq AS bigint) AND aside.parked_at IS NULL
RETURNING aside.seq;

-- name: hold_aside
-- Take a counted delivery of an event that was put aside back, and let it be due later. Guard: it waits. hold_cursor came
-- before.
UPDATE fencerow.event_asides AS aside
SET deliveries = GREATEST(aside.deliveries - 1, 0),
    due_at = (SELECT fencerow.now()) + fencerow.seconds(CAST(:delay_s AS double precision))
WHERE aside.grp = :grp AND aside.seq = CAST(:seq AS bigint) AND aside.parked_at IS NULL
RETURNING aside.seq;

-- name: redrive_events
-- Let parked events be delivered again, all of a group or those at these places. Guard: parked.
UPDATE fencerow.event_asides AS aside
SET parked_at = NULL, deliveries = 0, due_at = (SELECT fencerow.now())
WHERE aside.grp = :grp
  AND aside.parked_at IS NOT NULL
  AND (CAST(:places AS bigint[]) IS NULL OR aside.seq = ANY(CAST(:places AS bigint[])))
RETURNING aside.seq;

-- name: discard_parked
-- Forget parked events: those at these places, or of this age. Guard: parked.
DELETE FROM fencerow.event_asides AS aside
WHERE (CAST(:grp AS text) IS NULL OR aside.grp = :grp)
  AND aside.parked_at <= (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
  AND (CAST(:places AS bigint[]) IS NULL OR aside.seq = ANY(CAST(:places AS bigint[])))
RETURNING aside.seq;

-- name: parked_events
-- Parked events, the oldest first. Each event is looked up by its id (OFFSET 0), whatever the planner knows.
SELECT aside.grp, aside.seq, aside.event_id, event.topic, aside.key, aside.deliveries, fencerow.us(aside.parked_at),
       CAST(aside.error AS text), CAST(event.data AS text), CAST(event.headers AS text),
       fencerow.us(event.published_at)
FROM fencerow.event_asides AS aside
LEFT JOIN LATERAL (
    SELECT named.topic, named.data, named.headers, named.published_at
    FROM fencerow.events AS named
    WHERE named.id = aside.event_id
    OFFSET 0
) AS event ON true
WHERE aside.parked_at IS NOT NULL AND (CAST(:grp AS text) IS NULL OR aside.grp = :grp)
ORDER BY aside.parked_at, aside.seq
LIMIT CAST(:limit AS bigint);

-- name: replay_cursors
-- Let a group read again what comes after this place. Its readers lose their partitions: what they have delivered
-- and not acknowledged is delivered again. hold_group came before.
-- Guard: a cursor only goes back.
UPDATE fencerow.event_cursors AS held
SET cursor = LEAST(held.cursor, CAST(:after AS bigint)), fence = held.fence + 1, holder = NULL, careful = false,
    trying = NULL, tries = 0
WHERE held.grp = :grp
RETURNING held.part;

-- name: forget_asides
-- What was put aside after this place is read again from the log.
DELETE FROM fencerow.event_asides AS aside WHERE aside.grp = :grp AND aside.seq > CAST(:after AS bigint);

-- name: begin_generation
-- Note the replay. hold_group came before.
UPDATE fencerow.event_groups AS known
SET generation = known.generation + 1, replayed_at = (SELECT fencerow.now()), alarmed_at = NULL
WHERE known.name = :grp
RETURNING known.generation;

-- name: remove_group
-- Forget a group, what it has put aside, its cursors and its readers.
WITH asides AS (DELETE FROM fencerow.event_asides AS aside WHERE aside.grp = :grp),
cursors AS (DELETE FROM fencerow.event_cursors AS held WHERE held.grp = :grp),
readers AS (DELETE FROM fencerow.event_drainers AS reader WHERE reader.grp = :grp)
DELETE FROM fencerow.event_groups AS known WHERE known.name = :grp
RETURNING known.name;
