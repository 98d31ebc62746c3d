-- compatible_from: 1
-- Receipts of jobs.
CREATE TABLE fencerow.receipts (
    job_id TEXT PRIMARY KEY NOT NULL,
    wish TEXT NOT NULL,
    state TEXT,
    signed_at INTEGER
);
