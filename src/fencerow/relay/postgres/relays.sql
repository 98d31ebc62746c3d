-- Relays: known, paused, run by whom. What comes in has parts, and each part one reader at a time; what decides is its
-- fence, which goes up whenever the reader changes. Leases only tell who may be replaced.

-- name: know_relay
-- Make a relay known, or note where its broker is now. A pause stays.
INSERT INTO fencerow.relays AS known (name, direction, place, created_at)
VALUES (:relay, :direction, :place, fencerow.now())
ON CONFLICT (name) DO UPDATE SET place = EXCLUDED.place, direction = EXCLUDED.direction
WHERE known.place <> EXCLUDED.place OR known.direction <> EXCLUDED.direction
RETURNING name;

-- name: renew_relay_reader
-- Say that this process runs the relay, and what keeps it from going on; of one trouble the first moment stays.
INSERT INTO fencerow.relay_readers AS reader (relay, holder, name, lease_until, trouble, trouble_since)
SELECT :relay, CAST(:holder AS uuid), :name, clock.now + fencerow.seconds(CAST(:lease_s AS double precision)),
       CAST(:trouble AS text), CASE WHEN CAST(:trouble AS text) IS NOT NULL THEN clock.now END
FROM (SELECT fencerow.now() AS now) AS clock
ON CONFLICT (relay, holder) DO UPDATE
SET lease_until = EXCLUDED.lease_until,
    trouble = EXCLUDED.trouble,
    trouble_since = CASE WHEN EXCLUDED.trouble IS NOT NULL
                         THEN COALESCE(reader.trouble_since, EXCLUDED.trouble_since) END;

-- name: known_relays
-- All relays, and whether each rests.
SELECT known.name, known.paused_at IS NOT NULL FROM fencerow.relays AS known;

-- name: live_relay_readers
-- How many processes run a relay.
SELECT count(*) FROM fencerow.relay_readers AS reader
WHERE reader.relay = :relay AND reader.lease_until > fencerow.now();

-- name: make_relay_parts
-- Make the parts known that the broker has. Those that come later than the first ones are read from their beginning.
-- Guard: the primary key; what is there is left as it is.
INSERT INTO fencerow.relay_parts (relay, part, position)
SELECT :relay, made.part,
       CASE WHEN EXISTS (SELECT 1 FROM fencerow.relay_parts AS known WHERE known.relay = :relay) THEN '<' ELSE '' END
FROM generate_series(0, CAST(:parts AS integer) - 1) AS made (part)
ON CONFLICT (relay, part) DO NOTHING
RETURNING part;

-- name: read_relay_parts
-- The parts of a relay: where they are, their readers, and whether those are alive.
SELECT held.part, held.position, held.generation, held.fence, CAST(held.holder AS text),
       COALESCE(reader.lease_until > fencerow.now(), false), held.stopped IS NOT NULL
FROM fencerow.relay_parts AS held
LEFT JOIN fencerow.relay_readers AS reader ON reader.relay = held.relay AND reader.holder = held.holder
WHERE held.relay = :relay
ORDER BY held.part;

-- name: take_relay_parts
-- Take parts that nobody reads, or whose reader is dead. Guard: free, or still under a reader that was found dead. The
-- fence goes up. Rows that another one takes just now are passed over.
UPDATE fencerow.relay_parts AS taken
SET holder = CAST(:holder AS uuid), fence = taken.fence + 1
WHERE taken.relay = :relay
  AND taken.part = ANY(ARRAY(SELECT free.part FROM fencerow.relay_parts AS free
                             WHERE free.relay = :relay
                               AND (free.holder IS NULL OR free.holder = ANY(CAST(:dead AS uuid[])))
                             ORDER BY free.part
                             LIMIT CAST(:count AS bigint)
                             FOR UPDATE SKIP LOCKED))
  AND (taken.holder IS NULL OR taken.holder = ANY(CAST(:dead AS uuid[])))
RETURNING taken.part, taken.position, taken.generation, taken.fence, taken.stopped;

-- name: give_relay_parts
-- Give parts back. Guard: still ours.
UPDATE fencerow.relay_parts AS given
SET holder = NULL, fence = given.fence + 1
WHERE given.relay = :relay AND given.part = ANY(CAST(:parts AS integer[])) AND given.holder = CAST(:holder AS uuid)
RETURNING given.part;

-- name: forget_relay_reader
-- A process runs the relay no more. What it still holds is free at once.
DELETE FROM fencerow.relay_readers AS reader WHERE reader.relay = :relay AND reader.holder = CAST(:holder AS uuid);

-- name: forget_dead_relay_readers
-- Forget processes that died long ago. Guard: they hold nothing.
DELETE FROM fencerow.relay_readers AS reader
WHERE reader.lease_until < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
  AND NOT EXISTS (SELECT 1 FROM fencerow.relay_parts AS held
                  WHERE held.relay = reader.relay AND held.holder = reader.holder
                  OFFSET 0)
RETURNING reader.relay;

-- name: move_relay_part
-- Move a part on: what lies before the new position is stored in this transaction. Guard: still this reader's, in its
-- fence, where it left it, and nobody has stopped it. The row stays locked until the end, so nobody takes the part over
-- in between.
UPDATE fencerow.relay_parts AS held
SET position = :position,
    taken = held.taken + CAST(:taken AS bigint),
    unread = held.unread + CAST(:unread AS bigint),
    lag = CAST(:lag AS bigint),
    moved_at = (SELECT fencerow.now())
WHERE held.relay = :relay
  AND held.part = CAST(:part AS integer)
  AND held.holder = CAST(:holder AS uuid)
  AND held.fence = CAST(:fence AS bigint)
  AND held.position = :old
  AND held.stopped IS NULL
RETURNING held.part;

-- name: begin_relay_part
-- Let a part begin at this position, in a new generation: it was never read, or the broker has forgotten what we read.
-- Guard: still this reader's, in its fence, and where it left it.
UPDATE fencerow.relay_parts AS held
SET position = :position,
    generation = held.generation + CASE WHEN CAST(:anew AS boolean) THEN 1 ELSE 0 END,
    gone = held.gone + CAST(:gone AS bigint),
    gone_at = CASE WHEN CAST(:told AS boolean) THEN (SELECT fencerow.now()) ELSE held.gone_at END,
    moved_at = (SELECT fencerow.now())
WHERE held.relay = :relay
  AND held.part = CAST(:part AS integer)
  AND held.holder = CAST(:holder AS uuid)
  AND held.fence = CAST(:fence AS bigint)
  AND held.position = :old
RETURNING held.generation;

-- name: stop_relay_part
-- Read no more of a part until somebody says where to go on. Guard: as for begin_relay_part.
UPDATE fencerow.relay_parts AS held
SET stopped = :reason, gone_at = (SELECT fencerow.now())
WHERE held.relay = :relay
  AND held.part = CAST(:part AS integer)
  AND held.holder = CAST(:holder AS uuid)
  AND held.fence = CAST(:fence AS bigint)
  AND held.position = :old
RETURNING held.part;

-- name: note_relay_lag
-- How far a part is behind, for who looks. Guard: still this reader's.
UPDATE fencerow.relay_parts AS held
SET lag = CAST(:lag AS bigint)
WHERE held.relay = :relay AND held.part = CAST(:part AS integer) AND held.holder = CAST(:holder AS uuid)
  AND held.fence = CAST(:fence AS bigint) AND held.lag IS DISTINCT FROM CAST(:lag AS bigint);

-- name: put_unread
-- Keep what could not be read. The part was moved under its guard earlier in this transaction.
INSERT INTO fencerow.relay_unread (relay, part, position, generation, key, headers, raw, bytes, error, at)
SELECT :relay, CAST(:part AS integer), new.position, CAST(:generation AS integer), new.key, CAST(new.headers AS json),
       new.raw, new.bytes, new.error, clock.now
FROM json_to_recordset(CAST(:unread AS json)) AS new (
    position text, key text, headers text, raw text, bytes bigint, error text
)
CROSS JOIN (SELECT fencerow.now() AS now) AS clock;

-- name: pause_relay
-- Let a relay rest. Guard: it does not.
UPDATE fencerow.relays AS known SET paused_at = (SELECT fencerow.now()), reason = CAST(:reason AS text)
WHERE known.name = :relay AND known.paused_at IS NULL
RETURNING known.name;

-- name: resume_relay
-- Let a relay go on. Guard: it rests.
UPDATE fencerow.relays AS known SET paused_at = NULL, reason = NULL
WHERE known.name = :relay AND known.paused_at IS NOT NULL
RETURNING known.name;

-- name: set_relay_position
-- Let a part go on at this position, and under no reader: whoever reads it now changes nothing more.
UPDATE fencerow.relay_parts AS held
SET position = :position, fence = held.fence + 1, holder = NULL, stopped = NULL, lag = NULL,
    generation = held.generation + CASE WHEN CAST(:again AS boolean) THEN 1 ELSE 0 END
WHERE held.relay = :relay AND held.part = CAST(:part AS integer)
RETURNING CAST(held.part AS text);

-- name: list_relays
-- All relays, or this one: with its living readers, the first of their troubles, and sums over its parts.
SELECT known.name, known.direction, known.place, fencerow.us(known.paused_at), known.reason,
       (SELECT count(*) FROM fencerow.relay_readers AS reader
        WHERE reader.relay = known.name AND reader.lease_until > clock.now),
       troubled.trouble, fencerow.us(troubled.trouble_since),
       sums.lag, sums.taken, sums.unread, sums.gone, fencerow.us(sums.gone_at), sums.stopped, fencerow.us(clock.now)
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN fencerow.relays AS known
LEFT JOIN LATERAL (
    SELECT reader.trouble, reader.trouble_since FROM fencerow.relay_readers AS reader
    WHERE reader.relay = known.name AND reader.lease_until > clock.now AND reader.trouble IS NOT NULL
    ORDER BY reader.trouble_since LIMIT 1
) AS troubled ON true
CROSS JOIN LATERAL (
    SELECT CAST(sum(held.lag) AS bigint) AS lag, CAST(sum(held.taken) AS bigint) AS taken,
           CAST(sum(held.unread) AS bigint) AS unread, CAST(sum(held.gone) AS bigint) AS gone,
           max(held.gone_at) AS gone_at, min(held.stopped) AS stopped
    FROM fencerow.relay_parts AS held WHERE held.relay = known.name
) AS sums
WHERE CAST(:relay AS text) IS NULL OR known.name = :relay
ORDER BY known.name;

-- name: list_relay_parts
-- The parts of a relay, for who looks.
SELECT held.part, held.position, held.generation, reader.name, held.taken, held.unread, held.gone,
       fencerow.us(held.gone_at), held.lag, held.stopped, fencerow.us(held.moved_at), fencerow.us(clock.now)
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN fencerow.relay_parts AS held
LEFT JOIN fencerow.relay_readers AS reader
       ON reader.relay = held.relay AND reader.holder = held.holder AND reader.lease_until > clock.now
WHERE held.relay = :relay
ORDER BY held.part;

-- name: list_unread
-- What could not be read, the latest first.
SELECT kept.id, kept.relay, kept.part, kept.position, kept.key, CAST(kept.headers AS text), kept.raw, kept.bytes,
       kept.error, fencerow.us(kept.at), fencerow.us(clock.now)
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN fencerow.relay_unread AS kept
WHERE CAST(:relay AS text) IS NULL OR kept.relay = :relay
ORDER BY kept.id DESC
LIMIT CAST(:limit AS bigint);

-- name: discard_unread
-- Forget what could not be read: these, or all of a relay.
DELETE FROM fencerow.relay_unread AS kept
WHERE kept.relay = :relay AND (CAST(:ids AS bigint[]) IS NULL OR kept.id = ANY(CAST(:ids AS bigint[])))
RETURNING CAST(kept.id AS text);

-- name: purge_unread
-- Forget what could not be read and is old.
DELETE FROM fencerow.relay_unread AS kept
WHERE kept.id = ANY(ARRAY(SELECT old.id FROM fencerow.relay_unread AS old
                          WHERE old.at <= (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
                          ORDER BY old.at LIMIT CAST(:limit AS bigint)))
RETURNING kept.id;

-- name: remove_relay
-- Forget a relay: its parts, its readers, and what it could not read.
WITH parts AS (DELETE FROM fencerow.relay_parts AS held WHERE held.relay = :relay),
readers AS (DELETE FROM fencerow.relay_readers AS reader WHERE reader.relay = :relay),
unread AS (DELETE FROM fencerow.relay_unread AS kept WHERE kept.relay = :relay)
DELETE FROM fencerow.relays AS known WHERE known.name = :relay
RETURNING known.name;
