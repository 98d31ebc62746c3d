-- compatible_from: 1
-- Receipts of jobs.
CREATE TABLE fencerow.receipts (
    job_id uuid PRIMARY KEY,
    wish text NOT NULL,
    state text,                                  -- how the job ended; NULL: it has not
    signed_at timestamptz
);
