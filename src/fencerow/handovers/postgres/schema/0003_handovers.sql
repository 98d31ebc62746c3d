-- compatible_from: 1
-- Handovers: the ends of jobs, handed to a receiver in the order of the submits and kept until they are confirmed.

CREATE TABLE fencerow.handovers (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the order of the submits
    job_id uuid NOT NULL UNIQUE,
    receiver text NOT NULL,                      -- to whom
    key text NOT NULL,                           -- whose line it is
    hold_s double precision NOT NULL CHECK (hold_s BETWEEN 0 AND 1e9),  -- how long an end waits for those before it
    name text NOT NULL,                          -- the job's
    lined_at timestamptz NOT NULL CHECK (lined_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00'),
    state text CHECK (state IN ('succeeded', 'failed', 'cancelled')),  -- how it ended; NULL: it has not
    attempt bigint,
    result json,
    error json,
    ended_at timestamptz,
    held_until timestamptz,                      -- from then on it waits for nobody
    -- How often it was taken: the fence of a take. Each take raises it.
    token bigint NOT NULL DEFAULT 0 CHECK (token BETWEEN 0 AND 1000000000000000000),
    holder uuid,                                 -- the latest take
    taken_by text,
    taken_at timestamptz,
    lease_s double precision,
    free_at timestamptz,                         -- nobody else takes it before then
    confirmed_at timestamptz,
    confirmed_by text,
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CHECK (confirmed_at IS NULL OR state IS NOT NULL)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- Who stands before whom.
CREATE INDEX handovers_line ON fencerow.handovers (receiver, key, place) WHERE confirmed_at IS NULL;
-- The lines in which something has ended, and what waits for nobody any more.
CREATE INDEX handovers_ended ON fencerow.handovers (receiver, key) WHERE confirmed_at IS NULL AND state IS NOT NULL;
CREATE INDEX handovers_held ON fencerow.handovers (receiver, held_until)
    WHERE confirmed_at IS NULL AND state IS NOT NULL AND held_until IS NOT NULL;
-- When a take is over.
CREATE INDEX handovers_taken ON fencerow.handovers (receiver, free_at)
    WHERE confirmed_at IS NULL AND state IS NOT NULL AND free_at IS NOT NULL;
