-- compatible_from: 1
-- Events: a log that is written inside the publishers' transactions, and groups that each read all of it in order.
-- There is one writer at a time, so ids are given in the order of the commits: an event's id is its seq.

CREATE TABLE fencerow.events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,        -- the greatest is not given again after retention took it
    topic TEXT NOT NULL,
    key TEXT,
    bucket INTEGER NOT NULL,
    data TEXT NOT NULL,
    headers TEXT,
    bytes INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(topic), typeof(key), typeof(data), typeof(headers)))
);

CREATE TABLE fencerow.event_marks (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    settled INTEGER NOT NULL DEFAULT 0,
    trimmed INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE fencerow.event_groups (
    name TEXT PRIMARY KEY NOT NULL,
    topics TEXT NOT NULL,
    partitions INTEGER NOT NULL CHECK (partitions > 0),
    outcomes INTEGER NOT NULL,
    generation INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    replayed_at INTEGER,
    alarmed_at INTEGER,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(topics)))
);

CREATE TABLE fencerow.event_cursors (
    grp TEXT NOT NULL,
    part INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0,
    holder TEXT,
    careful INTEGER NOT NULL DEFAULT 0,
    trying INTEGER,
    tries INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, part),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(grp), typeof(holder))),
    -- What is no number here would stop all partitions of its group.
    CONSTRAINT whole_numbers CHECK (typeof(part) = 'integer' AND typeof(cursor) = 'integer' AND typeof(fence) = 'integer'
        AND typeof(careful) = 'integer' AND typeof(trying) IN ('integer', 'null') AND typeof(tries) = 'integer')
) WITHOUT ROWID;

CREATE TABLE fencerow.event_drainers (
    grp TEXT NOT NULL,
    holder TEXT NOT NULL,
    name TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    PRIMARY KEY (grp, holder),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(grp), typeof(holder), typeof(name)))
) WITHOUT ROWID;

CREATE TABLE fencerow.event_asides (
    grp TEXT NOT NULL,
    part INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    key TEXT,
    deliveries INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    parked_at INTEGER,
    error TEXT,
    PRIMARY KEY (grp, seq),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(grp), typeof(key), typeof(error)))
) WITHOUT ROWID;
CREATE INDEX fencerow.event_asides_due ON fencerow.event_asides (grp, part, seq) WHERE parked_at IS NULL;
CREATE INDEX fencerow.event_asides_key ON fencerow.event_asides (grp, key, seq) WHERE parked_at IS NULL AND key IS NOT NULL;
