-- compatible_from: 1
-- Jobs worked over HTTP: the attempts that an endpoint may answer later, each by a token of its own.

CREATE TABLE fencerow.worked_attempts (
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,            -- of the token: SHA-256, in hexadecimal
    sent_at timestamptz NOT NULL,
    failures integer NOT NULL,                   -- of the job, when it was sent: whether this one was counted since
    until timestamptz NOT NULL,                  -- an answer that comes later changes nothing
    give_up_at timestamptz NOT NULL,             -- no heartbeat moves `until` beyond it
    silent_s double precision NOT NULL,          -- how long the endpoint may be silent once it has deferred its answer
    deferred boolean NOT NULL DEFAULT false,     -- the endpoint said that it answers later
    look_at timestamptz,                         -- when whoever wakes the due looks at it; NULL: nobody needs to
    answered_at timestamptz,
    outcome text CHECK (outcome IN ('succeeded', 'failed', 'closed')),  -- closed: it was over by its reply
    answer json,
    PRIMARY KEY (job_id, attempt),
    CHECK ((outcome IS NULL) = (answered_at IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX worked_attempts_due ON fencerow.worked_attempts (look_at, job_id) WHERE look_at IS NOT NULL;
