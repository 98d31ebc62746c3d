-- compatible_from: 1
-- Whether the gateways are under maintenance: they are while the one row stands here.
CREATE TABLE fencerow.gateway_maintenance (
    id INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
    since INTEGER NOT NULL CHECK (typeof(since) = 'integer'),
    set_by TEXT CHECK (set_by IS NULL OR (typeof(set_by) = 'text' AND length(set_by) BETWEEN 1 AND 500)),
    reason TEXT CHECK (reason IS NULL OR (typeof(reason) = 'text' AND length(reason) BETWEEN 1 AND 500)),
    retry_after_s INTEGER NOT NULL CHECK (typeof(retry_after_s) = 'integer' AND retry_after_s BETWEEN 1 AND 86400)
);
