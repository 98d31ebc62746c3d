-- compatible_from: 1
-- The audit log: each change that a person made by hand. Nothing changes an entry; old ones are removed.
CREATE TABLE fencerow.audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL CHECK (typeof(at) = 'integer'),
    person TEXT NOT NULL CHECK (typeof(person) = 'text' AND length(person) BETWEEN 1 AND 500),
    via TEXT NOT NULL CHECK (via IN ('command', 'http', 'dashboard')),
    address TEXT CHECK (address IS NULL OR (typeof(address) = 'text' AND length(address) BETWEEN 1 AND 500)),
    request_id TEXT CHECK (request_id IS NULL OR (typeof(request_id) = 'text' AND length(request_id) BETWEEN 1 AND 500)),
    kind TEXT NOT NULL CHECK (typeof(kind) = 'text' AND length(kind) BETWEEN 1 AND 100),
    verb TEXT NOT NULL CHECK (typeof(verb) = 'text' AND length(verb) BETWEEN 1 AND 100),
    target TEXT NOT NULL CHECK (typeof(target) = 'text' AND length(target) BETWEEN 1 AND 2000),
    others TEXT CHECK (others IS NULL OR (typeof(others) = 'text' AND json_valid(others))),
    detail TEXT NOT NULL CHECK (typeof(detail) = 'text' AND json_valid(detail))
);
CREATE INDEX fencerow.audit_target ON fencerow.audit (target, id);
CREATE INDEX fencerow.audit_at ON fencerow.audit (at);
