-- compatible_from: 1
-- Webhooks: who is told of the ends of jobs over HTTP, what each is to be told, and how often that was tried.

CREATE TABLE fencerow.webhook_endpoints (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    old_secret TEXT,
    old_until INTEGER,
    events TEXT NOT NULL,
    queues TEXT,
    jobs TEXT,
    tags TEXT,
    with_result INTEGER NOT NULL,
    in_order TEXT NOT NULL CHECK (in_order IN ('none', 'key', 'endpoint')),
    timeout_s REAL NOT NULL CHECK (timeout_s BETWEEN 1 AND 300),
    attempts_max INTEGER NOT NULL CHECK (attempts_max BETWEEN 1 AND 100),
    state TEXT NOT NULL CHECK (state IN ('enabled', 'disabled', 'gone', 'removed')),
    reason TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    open_until INTEGER,
    version INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT,
    CHECK ((old_secret IS NULL) = (old_until IS NULL))
);
CREATE UNIQUE INDEX fencerow.webhook_endpoints_name ON fencerow.webhook_endpoints (name) WHERE state <> 'removed';

CREATE TABLE fencerow.webhook_deliveries (
    endpoint_id TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    webhook_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    ended_id TEXT NOT NULL,
    turn TEXT,
    body TEXT NOT NULL,
    job_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    delivered_at INTEGER,
    PRIMARY KEY (endpoint_id, event_id)
);
CREATE INDEX fencerow.webhook_deliveries_open ON fencerow.webhook_deliveries (endpoint_id, event_id)
    WHERE delivered_at IS NULL;
CREATE INDEX fencerow.webhook_deliveries_age ON fencerow.webhook_deliveries (delivered_at)
    WHERE delivered_at IS NOT NULL;
CREATE UNIQUE INDEX fencerow.webhook_deliveries_by ON fencerow.webhook_deliveries (job_id);
CREATE INDEX fencerow.webhook_deliveries_of_job ON fencerow.webhook_deliveries (ended_id);

CREATE TABLE fencerow.webhook_attempts (
    endpoint_id TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    took_s REAL NOT NULL,
    status INTEGER,
    failure TEXT,
    PRIMARY KEY (endpoint_id, event_id, number)
);
