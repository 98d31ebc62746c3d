-- Relays: known, paused, run by whom. What comes in has parts, and each part one reader at a time; what decides is its
-- fence, which goes up whenever the reader changes. Leases only tell who may be replaced.

-- name: know_relay
-- Make a relay known, or note where its broker is now. A pause stays.
INSERT INTO fencerow.relays (name, direction, place, created_at)
VALUES (:relay, :direction, :place, fencerow.now())
ON CONFLICT (name) DO UPDATE SET place = excluded.place, direction = excluded.direction
WHERE place <> excluded.place OR direction <> excluded.direction
RETURNING name;

-- name: renew_relay_reader
-- Say that this process runs the relay, and what keeps it from going on; of one trouble the first moment stays.
INSERT INTO fencerow.relay_readers (relay, holder, name, lease_until, trouble, trouble_since)
VALUES (:relay, :holder, :name, fencerow.now() + CAST(:lease_s * 1000000 AS INTEGER), :trouble,
        CASE WHEN :trouble IS NOT NULL THEN fencerow.now() END)
ON CONFLICT (relay, holder) DO UPDATE
SET lease_until = excluded.lease_until,
    trouble = excluded.trouble,
    trouble_since = CASE WHEN excluded.trouble IS NOT NULL THEN COALESCE(trouble_since, excluded.trouble_since) END;

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
WITH RECURSIVE made (part) AS (
    SELECT 0 UNION ALL SELECT made.part + 1 FROM made WHERE made.part + 1 < :parts
)
INSERT INTO fencerow.relay_parts (relay, part, position)
SELECT :relay, made.part,
       CASE WHEN EXISTS (SELECT 1 FROM fencerow.relay_parts AS known WHERE known.relay = :relay) THEN '<' ELSE '' END
FROM made WHERE true
ON CONFLICT (relay, part) DO NOTHING
RETURNING part;

-- name: read_relay_parts
-- The parts of a relay: where they are, their readers, and whether those are alive.
SELECT held.part, held.position, held.generation, held.fence, held.holder,
       COALESCE(reader.lease_until > fencerow.now(), 0), held.stopped IS NOT NULL
FROM fencerow.relay_parts AS held
LEFT JOIN fencerow.relay_readers AS reader ON reader.relay = held.relay AND reader.holder = held.holder
WHERE held.relay = :relay
ORDER BY held.part;

-- name: take_relay_parts
-- Take parts that nobody reads, or whose reader is dead. Guard: free, or still under a reader that was found dead. The
-- fence goes up. (SQLite 3.40 computes no IS NOT NULL rightly in a RETURNING of a table without rowids.)
UPDATE fencerow.relay_parts
SET holder = :holder, fence = fence + 1
WHERE relay = :relay
  AND part IN (SELECT picked.part
               FROM (SELECT free.part FROM fencerow.relay_parts AS free
                     WHERE free.relay = :relay
                       AND (free.holder IS NULL OR free.holder IN (SELECT value FROM json_each(:dead)))
                     ORDER BY free.part
                     LIMIT :count) AS picked)
RETURNING part, position, generation, fence, stopped;

-- name: give_relay_parts
-- Give parts back. Guard: still ours.
UPDATE fencerow.relay_parts
SET holder = NULL, fence = fence + 1
WHERE relay = :relay AND part IN (SELECT value FROM json_each(:parts)) AND holder = :holder
RETURNING part;

-- name: forget_relay_reader
-- A process runs the relay no more. What it still holds is free at once.
DELETE FROM fencerow.relay_readers WHERE relay = :relay AND holder = :holder;

-- name: forget_dead_relay_readers
-- Forget processes that died long ago. Guard: they hold nothing.
DELETE FROM fencerow.relay_readers
WHERE lease_until < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
  AND (relay, holder) NOT IN (SELECT held.relay, held.holder
                              FROM fencerow.relay_parts AS held WHERE held.holder IS NOT NULL)
RETURNING relay;

-- name: move_relay_part
-- Move a part on: what lies before the new position is stored in this transaction. Guard: still this reader's, in its
-- fence, where it left it, and nobody has stopped it.
UPDATE fencerow.relay_parts
SET position = :position,
    taken = taken + :taken,
    unread = unread + :unread,
    lag = :lag,
    moved_at = fencerow.now()
WHERE relay = :relay
  AND part = :part
  AND holder = :holder
  AND fence = :fence
  AND position = :old
  AND stopped IS NULL
RETURNING part;

-- name: begin_relay_part
-- Let a part begin at this position, in a new generation: it was never read, or the broker has forgotten what we read.
-- Guard: still this reader's, in its fence, and where it left it.
UPDATE fencerow.relay_parts
SET position = :position,
    generation = generation + CASE WHEN :anew THEN 1 ELSE 0 END,
    gone = gone + :gone,
    gone_at = CASE WHEN :told THEN fencerow.now() ELSE gone_at END,
    moved_at = fencerow.now()
WHERE relay = :relay
  AND part = :part
  AND holder = :holder
  AND fence = :fence
  AND position = :old
RETURNING generation;

-- name: stop_relay_part
-- Read no more of a part until somebody says where to go on. Guard: as for begin_relay_part.
UPDATE fencerow.relay_parts
SET stopped = :reason, gone_at = fencerow.now()
WHERE relay = :relay
  AND part = :part
  AND holder = :holder
  AND fence = :fence
  AND position = :old
RETURNING part;

-- name: note_relay_lag
-- How far a part is behind, for who looks. Guard: still this reader's.
UPDATE fencerow.relay_parts
SET lag = :lag
WHERE relay = :relay AND part = :part AND holder = :holder AND fence = :fence AND lag IS NOT :lag;

-- name: put_unread
-- Keep what could not be read. The part was moved under its guard earlier in this transaction.
INSERT INTO fencerow.relay_unread (relay, part, position, generation, key, headers, raw, bytes, error, at)
SELECT :relay, :part, new.value ->> 'position', :generation, new.value ->> 'key', new.value ->> 'headers',
       new.value ->> 'raw', new.value ->> 'bytes', new.value ->> 'error', fencerow.now()
FROM json_each(:unread) AS new;

-- name: pause_relay
-- Let a relay rest. Guard: it does not.
UPDATE fencerow.relays SET paused_at = fencerow.now(), reason = :reason
WHERE name = :relay AND paused_at IS NULL
RETURNING name;

-- name: resume_relay
-- Let a relay go on. Guard: it rests.
UPDATE fencerow.relays SET paused_at = NULL, reason = NULL
WHERE name = :relay AND paused_at IS NOT NULL
RETURNING name;

-- name: set_relay_position
-- Let a part go on at this position, and under no reader: whoever reads it now changes nothing more.
UPDATE fencerow.relay_parts
SET position = :position, fence = fence + 1, holder = NULL, stopped = NULL, lag = NULL,
    generation = generation + CASE WHEN :again THEN 1 ELSE 0 END
WHERE relay = :relay AND part = :part
RETURNING CAST(part AS TEXT);

-- name: list_relays
-- All relays, or this one: with its living readers, the first of their troubles, and sums over its parts.
SELECT known.name, known.direction, known.place, known.paused_at, known.reason,
       (SELECT count(*) FROM fencerow.relay_readers AS reader
        WHERE reader.relay = known.name AND reader.lease_until > fencerow.now()),
       (SELECT reader.trouble FROM fencerow.relay_readers AS reader
        WHERE reader.relay = known.name AND reader.lease_until > fencerow.now() AND reader.trouble IS NOT NULL
        ORDER BY reader.trouble_since LIMIT 1),
       (SELECT min(reader.trouble_since) FROM fencerow.relay_readers AS reader
        WHERE reader.relay = known.name AND reader.lease_until > fencerow.now() AND reader.trouble IS NOT NULL),
       (SELECT sum(held.lag) FROM fencerow.relay_parts AS held WHERE held.relay = known.name),
       (SELECT sum(held.taken) FROM fencerow.relay_parts AS held WHERE held.relay = known.name),
       (SELECT sum(held.unread) FROM fencerow.relay_parts AS held WHERE held.relay = known.name),
       (SELECT sum(held.gone) FROM fencerow.relay_parts AS held WHERE held.relay = known.name),
       (SELECT max(held.gone_at) FROM fencerow.relay_parts AS held WHERE held.relay = known.name),
       (SELECT min(held.stopped) FROM fencerow.relay_parts AS held WHERE held.relay = known.name),
       fencerow.now()
FROM fencerow.relays AS known
WHERE :relay IS NULL OR known.name = :relay
ORDER BY known.name;

-- name: list_relay_parts
-- The parts of a relay, for who looks.
SELECT held.part, held.position, held.generation, reader.name, held.taken, held.unread, held.gone, held.gone_at,
       held.lag, held.stopped, held.moved_at, fencerow.now()
FROM fencerow.relay_parts AS held
LEFT JOIN fencerow.relay_readers AS reader
       ON reader.relay = held.relay AND reader.holder = held.holder AND reader.lease_until > fencerow.now()
WHERE held.relay = :relay
ORDER BY held.part;

-- name: list_unread
-- What could not be read, the latest first.
SELECT kept.id, kept.relay, kept.part, kept.position, kept.key, kept.headers, kept.raw, kept.bytes, kept.error, kept.at,
       fencerow.now()
FROM fencerow.relay_unread AS kept
WHERE :relay IS NULL OR kept.relay = :relay
ORDER BY kept.id DESC
LIMIT :limit;

-- name: discard_unread
-- Forget what could not be read: these, or all of a relay.
DELETE FROM fencerow.relay_unread
WHERE relay = :relay AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
RETURNING CAST(id AS TEXT);

-- name: purge_unread
-- Forget what could not be read and is old.
DELETE FROM fencerow.relay_unread
WHERE id IN (SELECT old.id FROM fencerow.relay_unread AS old
             WHERE old.at <= fencerow.now() - CAST(:age_s * 1000000 AS INTEGER) ORDER BY old.at LIMIT :limit)
RETURNING id;

-- name: remove_relay
-- Forget a relay: its parts, its readers, and what it could not read.
DELETE FROM fencerow.relay_parts WHERE relay = :relay;
DELETE FROM fencerow.relay_readers WHERE relay = :relay;
DELETE FROM fencerow.relay_unread WHERE relay = :relay;
DELETE FROM fencerow.relays WHERE name = :relay
RETURNING name;
