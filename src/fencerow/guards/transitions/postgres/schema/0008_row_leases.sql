-- compatible_from: 1
-- Which attempt of a job has claimed a row of a user's table, under which fence: the job's next attempt may claim it
-- while the fence is that one.
CREATE TABLE fencerow.row_leases (
    target text NOT NULL,                        -- the user's table, by its oid
    sub text NOT NULL,                           -- the sub-state's name; '': the main state
    row_id text NOT NULL,
    fence bigint NOT NULL,
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    until timestamptz NOT NULL,                  -- when the line may be forgotten
    PRIMARY KEY (target, sub, row_id)
);
CREATE INDEX row_leases_job ON fencerow.row_leases (job_id);
CREATE INDEX row_leases_expiry ON fencerow.row_leases (until);
