-- compatible_from: 1
-- Which attempt of a job has claimed a row of a user's table, under which fence: the job's next attempt may claim it
-- while the fence is that one.
CREATE TABLE fencerow.row_leases (
    target TEXT NOT NULL,
    sub TEXT NOT NULL,
    row_id TEXT NOT NULL,
    fence INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (target, sub, row_id),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(target), typeof(sub), typeof(row_id), typeof(job_id)))
) WITHOUT ROWID;
CREATE INDEX fencerow.row_leases_job ON fencerow.row_leases (job_id);
CREATE INDEX fencerow.row_leases_expiry ON fencerow.row_leases (until);
