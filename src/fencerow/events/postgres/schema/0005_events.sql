-- compatible_from: 1
-- Events: a log that is written inside the publishers' transactions, and groups that each read all of it in order.

-- The log. id is given when an event is published, seq when it is known to be committed: readers go by seq.
CREATE TABLE fencerow.events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq bigint,
    topic text NOT NULL,
    key text,                                    -- events of one key are delivered in order
    bucket smallint NOT NULL,                    -- of the key: the partitions of a group are sets of buckets
    data json NOT NULL,
    headers json,
    bytes integer NOT NULL,
    published_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
-- Unique: two sequencers that ran at once, against their lock, could not both commit.
CREATE UNIQUE INDEX events_seq ON fencerow.events (seq) WHERE seq IS NOT NULL;

-- One row at most. Every event with an id up to `settled` has its seq or was rolled back; `trimmed` is the greatest
-- seq that retention has removed.
CREATE TABLE fencerow.event_marks (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    settled bigint NOT NULL DEFAULT 0,
    trimmed bigint NOT NULL DEFAULT 0
);

CREATE TABLE fencerow.event_groups (
    name text PRIMARY KEY,
    topics json NOT NULL,
    partitions integer NOT NULL CHECK (partitions > 0),
    outcomes boolean NOT NULL,                   -- it wants to know how jobs ended
    generation bigint NOT NULL DEFAULT 1,        -- a replay begins the next
    created_at timestamptz NOT NULL,
    replayed_at timestamptz,
    alarmed_at timestamptz                       -- told that retention will take what it has not read
);

-- A partition of a group: how far it has read, and who reads it. The fence goes up with every new reader.
CREATE TABLE fencerow.event_cursors (
    grp text NOT NULL,
    part integer NOT NULL,
    cursor bigint NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    holder uuid,
    careful boolean NOT NULL DEFAULT false,      -- the last reader died: an event of its may be what killed it
    trying bigint,                               -- the seq that is being tried since, and how often it was
    tries integer NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, part)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- A process that reads for a group, and until when it counts as alive.
CREATE TABLE fencerow.event_drainers (
    grp text NOT NULL,
    holder uuid NOT NULL,
    name text NOT NULL,
    lease_until timestamptz NOT NULL,
    PRIMARY KEY (grp, holder)
) WITH (fillfactor = 50);

-- Events that a group has passed without being done with them: failed and to be tried again, behind a failed one of
-- the same key, or parked.
CREATE TABLE fencerow.event_asides (
    grp text NOT NULL,
    part integer NOT NULL,
    seq bigint NOT NULL,
    event_id bigint NOT NULL,
    key text,
    deliveries integer NOT NULL,
    due_at timestamptz NOT NULL,
    parked_at timestamptz,
    error json,
    PRIMARY KEY (grp, seq)
);
CREATE INDEX event_asides_due ON fencerow.event_asides (grp, part, seq) WHERE parked_at IS NULL;
CREATE INDEX event_asides_key ON fencerow.event_asides (grp, key, seq) WHERE parked_at IS NULL AND key IS NOT NULL;
