-- compatible_from: 1
-- Backfills: a row for each lane, which is a share of a user's table between two keys, walked from the first to the
-- last. Keys travel as text.
CREATE TABLE fencerow.backfills (
    name text NOT NULL,
    lane integer NOT NULL,
    target text NOT NULL,                        -- the table and its key, as they were declared
    kind text NOT NULL CHECK (kind IN ('number', 'text')),
    state text NOT NULL CHECK (state IN ('running', 'paused', 'failed', 'done')),
    run integer NOT NULL DEFAULT 1,              -- raised by each resume: jobs of an earlier run move nothing
    attempt bigint NOT NULL DEFAULT 0,           -- the newest at work in this run: the fence of each range
    first_key text,                              -- both are included; NULL: the table was empty
    last_key text,
    cursor text,                                 -- the last key of the last range that is done
    rows_done bigint NOT NULL DEFAULT 0,
    ranges_done bigint NOT NULL DEFAULT 0,
    rows_planned bigint NOT NULL,                -- in all lanes, as counted or estimated at the start
    failures integer NOT NULL DEFAULT 0,         -- of the range that is next
    failed_first text,                           -- that range, when it failed last
    failed_last text,
    error text,
    started_at timestamptz NOT NULL,
    run_at timestamptz NOT NULL,                 -- the start of this run, and what was done by then
    run_rows bigint NOT NULL DEFAULT 0,
    moved_at timestamptz NOT NULL,
    PRIMARY KEY (name, lane)
) WITH (fillfactor = 50);
