-- compatible_from: 1
-- Relays: events that go on to a broker, and messages of a broker that come in; where each has come to, and who reads it.

CREATE TABLE fencerow.relays (
    name TEXT PRIMARY KEY NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('in', 'out')),
    place TEXT NOT NULL,
    paused_at INTEGER,
    reason TEXT,
    created_at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(direction), typeof(place), typeof(reason)))
) WITHOUT ROWID;

CREATE TABLE fencerow.relay_readers (
    relay TEXT NOT NULL,
    holder TEXT NOT NULL,
    name TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    trouble TEXT,
    trouble_since INTEGER,
    PRIMARY KEY (relay, holder),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(relay), typeof(holder), typeof(name), typeof(trouble)))
) WITHOUT ROWID;

CREATE TABLE fencerow.relay_parts (
    relay TEXT NOT NULL,
    part INTEGER NOT NULL,
    position TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    holder TEXT,
    taken INTEGER NOT NULL DEFAULT 0,
    unread INTEGER NOT NULL DEFAULT 0,
    gone INTEGER NOT NULL DEFAULT 0,
    gone_at INTEGER,
    lag INTEGER,
    stopped TEXT,
    moved_at INTEGER,
    PRIMARY KEY (relay, part),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(relay), typeof(position), typeof(holder), typeof(stopped))),
    CONSTRAINT whole_numbers CHECK (typeof(part) = 'integer' AND typeof(generation) = 'integer'
        AND typeof(fence) = 'integer' AND typeof(taken) = 'integer' AND typeof(unread) = 'integer'
        AND typeof(gone) = 'integer' AND typeof(lag) IN ('integer', 'null'))
) WITHOUT ROWID;

CREATE TABLE fencerow.relay_unread (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    relay TEXT NOT NULL,
    part INTEGER NOT NULL,
    position TEXT NOT NULL,
    generation INTEGER NOT NULL,
    key TEXT,
    headers TEXT,
    raw TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    error TEXT NOT NULL,
    at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(relay), typeof(position), typeof(key), typeof(headers),
        typeof(raw), typeof(error)))
);
CREATE INDEX fencerow.relay_unread_of ON fencerow.relay_unread (relay, id);
CREATE INDEX fencerow.relay_unread_age ON fencerow.relay_unread (at);
