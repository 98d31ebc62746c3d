-- compatible_from: 1
-- Durable steps: what jobs remember of their runs, what they wait for, and the signals that were sent to them.

CREATE TABLE fencerow.job_steps (
    job_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL CHECK (length(name) <= 220),
    kind text NOT NULL CHECK (kind IN ('step', 'sleep', 'signal', 'patch')),
    seq integer NOT NULL CHECK (seq BETWEEN 1 AND 1000000),  -- its place in the order in which its run asked for them
    beside boolean NOT NULL DEFAULT false,       -- another was under way when it was asked for
    result json NOT NULL,
    attempt bigint NOT NULL,                     -- that remembered it
    at timestamptz NOT NULL,
    took_s double precision,                     -- how long it ran
    PRIMARY KEY (job_id, name)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- What suspended jobs wait for. A row counts only for the attempt that wrote it: the next one writes it again.
CREATE TABLE fencerow.job_waits (
    job_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL CHECK (length(name) <= 220),
    attempt bigint NOT NULL,
    signal text COLLATE "C",                     -- NULL: it waits for a time alone
    until timestamptz,                           -- when the wait is over in any case; NULL: never
    look_at timestamptz,                         -- when whoever wakes the due looks at it; NULL: somebody has
    since timestamptz NOT NULL,
    PRIMARY KEY (job_id, name),
    CHECK (signal IS NOT NULL OR until IS NOT NULL),
    CHECK (until IS NULL OR until BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00')
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX job_waits_due ON fencerow.job_waits (look_at) WHERE look_at IS NOT NULL;

CREATE TABLE fencerow.job_signals (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the order in which they are taken
    id uuid NOT NULL UNIQUE,                     -- the sender's own, so that it may be sent again
    job_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL CHECK (length(name) <= 100),
    data json NOT NULL,
    sent_by text,
    sent_at timestamptz NOT NULL,
    taken_as text                                -- the name of the wait that took it
);
CREATE INDEX job_signals_job ON fencerow.job_signals (job_id, name, seq);

-- What people are asked: each by an address of its own, which answers once.
CREATE TABLE fencerow.job_approvals (
    id uuid PRIMARY KEY,
    job_id uuid NOT NULL,
    signal text COLLATE "C" NOT NULL CHECK (length(signal) <= 100),  -- as which the job gets the answer
    asks text NOT NULL,
    digest text COLLATE "C" NOT NULL,            -- of the secret in the address: SHA-256, in hexadecimal
    made_by text,
    made_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    answered_at timestamptz,                     -- the address is used
    answer boolean
);
CREATE INDEX job_approvals_job ON fencerow.job_approvals (job_id, signal);
CREATE INDEX job_approvals_open ON fencerow.job_approvals (expires_at, id) WHERE answered_at IS NULL;
