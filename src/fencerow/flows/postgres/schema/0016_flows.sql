-- compatible_from: 1
-- Flows: jobs submitted together, of which some wait for the ends of others. The jobs themselves lie where all jobs lie.

CREATE TABLE fencerow.flows (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    digest text NOT NULL,                        -- of what was submitted: the same flow again is a repeat
    submit_id uuid NOT NULL,                     -- drawn by whoever submitted it: a submit whose answer was lost knows its own
    jobs integer NOT NULL CHECK (jobs BETWEEN 0 AND 1000000),
    queues text[] NOT NULL,                      -- to which its jobs and callbacks were submitted: sorted, each once
    submitted_at timestamptz NOT NULL CHECK (submitted_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 00:00:00+00'),
    submitted_by text,
    cancel_requested_at timestamptz,             -- from then on no job of it is woken any more
    cancel_requested_by text,
    ended_at timestamptz                         -- all of its jobs have ended, and nobody is to be woken
);
CREATE INDEX flows_open ON fencerow.flows (submitted_at, id) WHERE ended_at IS NULL;
CREATE INDEX flows_ended ON fencerow.flows (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX flows_submitted ON fencerow.flows (submitted_at, id);
-- An entry of an index holds 2,704 bytes at most, and a flow may have any number of queues: they are told apart by a hash.
CREATE INDEX flows_queues ON fencerow.flows ((queues[1]), (hash_array_extended(queues, 0)), submitted_at, id);

CREATE TABLE fencerow.flow_jobs (
    job_id uuid PRIMARY KEY,
    flow_id uuid NOT NULL,
    name text NOT NULL,                          -- in its flow
    job_name text NOT NULL,
    place integer NOT NULL,                      -- those that it waits for stand before it
    level integer NOT NULL,                      -- how many stand before it in the longest chain
    stage boolean NOT NULL,                      -- its result is the newest of the flow, once it is there
    is_read boolean NOT NULL,                    -- somebody may ask for its result when the job is gone
    woken_at timestamptz,                        -- all that it waits for had ended; of one that waits for nobody, the submit
    state text CHECK (state IN ('succeeded', 'failed', 'cancelled')),  -- how it ended; NULL: it has not
    told boolean NOT NULL DEFAULT false,         -- since it ended, those that wait for it were looked at
    attempt bigint,
    result json,
    error json,
    ended_at timestamptz,
    UNIQUE (flow_id, place),
    CHECK ((state IS NULL) = (ended_at IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE UNIQUE INDEX flow_jobs_name ON fencerow.flow_jobs (flow_id, name);
-- Whether any end is still to come, of a flow and at all; which ends are to be told.
CREATE INDEX flow_jobs_open ON fencerow.flow_jobs (flow_id) WHERE state IS NULL;
-- A condition of its own: who looks for the open jobs of one flow shall not walk those of all.
CREATE INDEX flow_jobs_live ON fencerow.flow_jobs (job_id) WHERE state IS NULL AND job_id IS NOT NULL;
CREATE INDEX flow_jobs_untold ON fencerow.flow_jobs (flow_id, place) WHERE state IS NOT NULL AND NOT told;
CREATE INDEX flow_jobs_broken ON fencerow.flow_jobs (flow_id, state) WHERE state IN ('failed', 'cancelled');

CREATE TABLE fencerow.flow_edges (
    job_id uuid NOT NULL,                        -- who waits
    before_id uuid NOT NULL,                     -- for whose end
    flow_id uuid NOT NULL,
    policy text NOT NULL CHECK (policy IN ('needs', 'after')),
    state text CHECK (state IN ('succeeded', 'failed', 'cancelled')),  -- how that ended, as far as it was told
    PRIMARY KEY (job_id, before_id)
);
CREATE INDEX flow_edges_before ON fencerow.flow_edges (before_id);
CREATE INDEX flow_edges_of ON fencerow.flow_edges (flow_id);
CREATE INDEX flow_edges_open ON fencerow.flow_edges (job_id) WHERE state IS NULL;
CREATE INDEX flow_edges_broken ON fencerow.flow_edges (job_id)
    WHERE policy = 'needs' AND state IN ('failed', 'cancelled');

CREATE TABLE fencerow.flow_callbacks (
    job_id uuid PRIMARY KEY,                     -- the job that it makes
    flow_id uuid NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('done', 'succeeded', 'failed')),  -- of the flow: when it is made
    job json NOT NULL,                           -- what is submitted then
    made_at timestamptz,
    trouble text                                 -- why it could not be submitted
);
CREATE INDEX flow_callbacks_of ON fencerow.flow_callbacks (flow_id);

CREATE TABLE fencerow.flow_waits (
    job_id uuid PRIMARY KEY,                     -- a job that waits inside of its handler
    attempt bigint NOT NULL,                     -- in which attempt; what an earlier one waited for plays no part
    flow_id uuid NOT NULL                        -- for all of this flow
);
CREATE INDEX flow_waits_of ON fencerow.flow_waits (flow_id);
