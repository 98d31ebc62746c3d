-- compatible_from: 1
-- The audit log: each change that a person made by hand. Nothing changes an entry; old ones are removed.

CREATE TABLE fencerow.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL CHECK (isfinite(at)),
    person text NOT NULL CHECK (length(person) BETWEEN 1 AND 500),
    via text NOT NULL CHECK (via IN ('command', 'http', 'dashboard')),
    address text CHECK (length(address) BETWEEN 1 AND 500),
    request_id text CHECK (length(request_id) BETWEEN 1 AND 500),
    kind text NOT NULL CHECK (length(kind) BETWEEN 1 AND 100),
    verb text NOT NULL CHECK (length(verb) BETWEEN 1 AND 100),
    target text NOT NULL CHECK (length(target) BETWEEN 1 AND 2000),     -- the first, where there are several
    others json,                                                        -- the names of the others
    detail json NOT NULL
);
CREATE INDEX audit_target ON fencerow.audit (target, id);
CREATE INDEX audit_at ON fencerow.audit (at);
