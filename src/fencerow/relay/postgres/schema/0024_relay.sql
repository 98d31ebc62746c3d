-- compatible_from: 1
-- Relays: events that go on to a broker, and messages of a broker that come in; where each has come to, and who reads it.

CREATE TABLE fencerow.relays (
    name text COLLATE "C" PRIMARY KEY,
    direction text NOT NULL CHECK (direction IN ('in', 'out')),
    place text NOT NULL,                         -- where the broker is, without passwords
    paused_at timestamptz,
    reason text,                                 -- of the pause
    created_at timestamptz NOT NULL
);

-- A process that runs a relay, until when it counts as alive, and what keeps it from going on.
CREATE TABLE fencerow.relay_readers (
    relay text COLLATE "C" NOT NULL,
    holder uuid NOT NULL,
    name text NOT NULL,
    lease_until timestamptz NOT NULL,
    trouble text,
    trouble_since timestamptz,
    PRIMARY KEY (relay, holder)
) WITH (fillfactor = 50);

-- A part of what comes in: a partition of a topic, or a whole stream. The fence goes up with every new reader.
CREATE TABLE fencerow.relay_parts (
    relay text COLLATE "C" NOT NULL,
    part integer NOT NULL,
    position text NOT NULL,                      -- the broker's; everything before it is stored here. Empty: not begun
    generation integer NOT NULL DEFAULT 0,       -- of the broker's positions: they begin anew, or are read again
    fence bigint NOT NULL DEFAULT 0,
    holder uuid,
    taken bigint NOT NULL DEFAULT 0,
    unread bigint NOT NULL DEFAULT 0,
    gone bigint NOT NULL DEFAULT 0,              -- messages that the broker removed before they were read
    gone_at timestamptz,
    lag bigint,                                  -- messages behind the position, when they were counted last
    stopped text,                                -- why nothing is read until somebody says where to go on
    moved_at timestamptz,
    PRIMARY KEY (relay, part)
) WITH (fillfactor = 50);

-- What came in and could not be read: put aside, so that the rest goes on.
CREATE TABLE fencerow.relay_unread (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relay text COLLATE "C" NOT NULL,
    part integer NOT NULL,
    position text NOT NULL,
    generation integer NOT NULL,
    key text,
    headers json,
    raw text NOT NULL,                           -- base64 of its first bytes
    bytes bigint NOT NULL,                       -- how many there were
    error text NOT NULL,
    at timestamptz NOT NULL
);
CREATE INDEX relay_unread_of ON fencerow.relay_unread (relay, id);
CREATE INDEX relay_unread_age ON fencerow.relay_unread (at);
