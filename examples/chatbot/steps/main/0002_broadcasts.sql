-- One row per recipient: the ledger of a broadcast, whose moves are declared in broadcast.py.
CREATE TABLE broadcasts (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE TABLE recipients (
    id TEXT PRIMARY KEY,
    broadcast TEXT NOT NULL REFERENCES broadcasts (id),
    batch BIGINT NOT NULL,
    address TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    claims BIGINT NOT NULL DEFAULT 0,
    claimed_at TIMESTAMPTZ,
    ended_at TIMESTAMPTZ,
    message TEXT,
    error TEXT,
    -- As ledger.constraint_sql() prints it.
    CONSTRAINT "recipients_state_check" CHECK ("state" IN ('pending', 'sending', 'sent', 'failed'))
);
CREATE INDEX recipients_of_batch ON recipients (broadcast, batch, state);
