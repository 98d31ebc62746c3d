-- compatible_from: 1
-- Whether the gateways are under maintenance: they are while the one row stands here.
CREATE TABLE fencerow.gateway_maintenance (
    id integer PRIMARY KEY CHECK (id = 1),
    since timestamptz NOT NULL CHECK (isfinite(since)),
    set_by text CHECK (length(set_by) BETWEEN 1 AND 500),
    reason text CHECK (length(reason) BETWEEN 1 AND 500),
    retry_after_s integer NOT NULL CHECK (retry_after_s BETWEEN 1 AND 86400)  -- what callers are told
);
