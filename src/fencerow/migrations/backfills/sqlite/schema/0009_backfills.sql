-- compatible_from: 1
-- Backfills: a row for each lane, which is a share of a user's table between two keys, walked from the first to the
-- last. Keys travel as text.
CREATE TABLE fencerow.backfills (
    name TEXT NOT NULL,
    lane INTEGER NOT NULL,
    target TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('number', 'text')),
    state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'failed', 'done')),
    run INTEGER NOT NULL DEFAULT 1,
    attempt INTEGER NOT NULL DEFAULT 0,
    first_key TEXT,
    last_key TEXT,
    cursor TEXT,
    rows_done INTEGER NOT NULL DEFAULT 0,
    ranges_done INTEGER NOT NULL DEFAULT 0,
    rows_planned INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    failed_first TEXT,
    failed_last TEXT,
    error TEXT,
    started_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    run_rows INTEGER NOT NULL DEFAULT 0,
    moved_at INTEGER NOT NULL,
    PRIMARY KEY (name, lane),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(target), typeof(first_key), typeof(last_key),
        typeof(cursor), typeof(failed_first), typeof(failed_last), typeof(error)))
) WITHOUT ROWID;
