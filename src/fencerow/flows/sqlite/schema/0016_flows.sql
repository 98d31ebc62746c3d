-- compatible_from: 1
-- Flows: jobs submitted together, of which some wait for the ends of others. The jobs themselves lie where all jobs lie.

CREATE TABLE fencerow.flows (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    submit_id TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    queues TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    submitted_by TEXT,
    cancel_requested_at INTEGER,
    cancel_requested_by TEXT,
    ended_at INTEGER,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(name), typeof(digest), typeof(submit_id), typeof(queues),
        typeof(submitted_by), typeof(cancel_requested_by)))
);
CREATE INDEX fencerow.flows_open ON fencerow.flows (submitted_at, id) WHERE ended_at IS NULL;
CREATE INDEX fencerow.flows_ended ON fencerow.flows (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX fencerow.flows_submitted ON fencerow.flows (submitted_at, id);
CREATE INDEX fencerow.flows_queues ON fencerow.flows (queues, submitted_at, id);

CREATE TABLE fencerow.flow_jobs (
    job_id TEXT NOT NULL PRIMARY KEY,
    flow_id TEXT NOT NULL,
    name TEXT NOT NULL,
    job_name TEXT NOT NULL,
    place INTEGER NOT NULL,
    level INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    is_read INTEGER NOT NULL,
    woken_at INTEGER,
    state TEXT CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    told INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER,
    result TEXT,
    error TEXT,
    ended_at INTEGER,
    UNIQUE (flow_id, place),
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(flow_id), typeof(name), typeof(job_name),
        typeof(state), typeof(result), typeof(error)))
);
CREATE UNIQUE INDEX fencerow.flow_jobs_name ON fencerow.flow_jobs (flow_id, name);
-- Whether any end is still to come, of a flow and at all; which ends are to be told.
CREATE INDEX fencerow.flow_jobs_open ON fencerow.flow_jobs (flow_id) WHERE state IS NULL;
CREATE INDEX fencerow.flow_jobs_live ON fencerow.flow_jobs (job_id) WHERE state IS NULL;
CREATE INDEX fencerow.flow_jobs_untold ON fencerow.flow_jobs (flow_id, place) WHERE state IS NOT NULL AND told = 0;
CREATE INDEX fencerow.flow_jobs_broken ON fencerow.flow_jobs (flow_id, state) WHERE state IN ('failed', 'cancelled');

CREATE TABLE fencerow.flow_edges (
    job_id TEXT NOT NULL,
    before_id TEXT NOT NULL,
    flow_id TEXT NOT NULL,
    policy TEXT NOT NULL CHECK (policy IN ('needs', 'after')),
    state TEXT CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    PRIMARY KEY (job_id, before_id),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(before_id), typeof(flow_id),
        typeof(policy), typeof(state)))
);
CREATE INDEX fencerow.flow_edges_before ON fencerow.flow_edges (before_id);
CREATE INDEX fencerow.flow_edges_of ON fencerow.flow_edges (flow_id);
CREATE INDEX fencerow.flow_edges_open ON fencerow.flow_edges (job_id) WHERE state IS NULL;
CREATE INDEX fencerow.flow_edges_broken ON fencerow.flow_edges (job_id)
    WHERE policy = 'needs' AND state IN ('failed', 'cancelled');

CREATE TABLE fencerow.flow_callbacks (
    job_id TEXT NOT NULL PRIMARY KEY,
    flow_id TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('done', 'succeeded', 'failed')),
    job TEXT NOT NULL,
    made_at INTEGER,
    trouble TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(flow_id), typeof(outcome), typeof(job),
        typeof(trouble)))
);
CREATE INDEX fencerow.flow_callbacks_of ON fencerow.flow_callbacks (flow_id);

CREATE TABLE fencerow.flow_waits (
    job_id TEXT NOT NULL PRIMARY KEY,
    attempt INTEGER NOT NULL,
    flow_id TEXT NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(flow_id)))
);
CREATE INDEX fencerow.flow_waits_of ON fencerow.flow_waits (flow_id);
