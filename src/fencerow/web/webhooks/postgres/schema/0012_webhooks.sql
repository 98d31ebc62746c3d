-- compatible_from: 1
-- Webhooks: who is told of the ends of jobs over HTTP, what each is to be told, and how often that was tried.

CREATE TABLE fencerow.webhook_endpoints (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    url text NOT NULL,
    secret text NOT NULL,                        -- by which it knows us; both sign while there are two
    old_secret text,
    old_until timestamptz,
    events json NOT NULL,                        -- the topics that it wants
    queues json,                                 -- NULL: of all queues; so with jobs and tags
    jobs json,
    tags json,
    with_result boolean NOT NULL,
    in_order text NOT NULL CHECK (in_order IN ('none', 'key', 'endpoint')),
    timeout_s double precision NOT NULL CHECK (timeout_s BETWEEN 1 AND 300),
    attempts_max integer NOT NULL CHECK (attempts_max BETWEEN 1 AND 100),
    state text NOT NULL CHECK (state IN ('enabled', 'disabled', 'gone', 'removed')),
    reason text,                                 -- why it is not enabled
    failures integer NOT NULL DEFAULT 0,         -- in a row: the circuit
    open_until timestamptz,                      -- nothing is sent before then; one probe goes first after it
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text,
    CHECK ((old_secret IS NULL) = (old_until IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
-- One that was removed stays until its deliveries are purged, without its secrets and its name's claim.
CREATE UNIQUE INDEX webhook_endpoints_name ON fencerow.webhook_endpoints (name) WHERE state <> 'removed';

-- A row for every event that an endpoint is told of: the primary key is why there are never two. Whether it waits, is
-- delivered or has failed is stored once: delivered_at, and else the state of its job.
CREATE TABLE fencerow.webhook_deliveries (
    endpoint_id uuid NOT NULL,
    event_id bigint NOT NULL,
    webhook_id text NOT NULL,                    -- the same with every try
    topic text NOT NULL,
    ended_id uuid NOT NULL,                      -- the job whose end it tells
    turn text,                                   -- whose order it keeps; NULL: none
    body text NOT NULL,                          -- as it is signed and sent
    job_id uuid NOT NULL,                        -- the job that delivers it
    created_at timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    delivered_at timestamptz,
    PRIMARY KEY (endpoint_id, event_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX webhook_deliveries_open ON fencerow.webhook_deliveries (endpoint_id, event_id) WHERE delivered_at IS NULL;
CREATE INDEX webhook_deliveries_age ON fencerow.webhook_deliveries (delivered_at) WHERE delivered_at IS NOT NULL;
CREATE UNIQUE INDEX webhook_deliveries_by ON fencerow.webhook_deliveries (job_id);
CREATE INDEX webhook_deliveries_of_job ON fencerow.webhook_deliveries (ended_id);

-- Every answer, and every try that had none.
CREATE TABLE fencerow.webhook_attempts (
    endpoint_id uuid NOT NULL,
    event_id bigint NOT NULL,
    number integer NOT NULL,
    at timestamptz NOT NULL,
    took_s double precision NOT NULL,
    status integer,                              -- NULL: no answer
    failure text,                                -- its kind; NULL: delivered
    PRIMARY KEY (endpoint_id, event_id, number)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
