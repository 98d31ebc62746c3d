-- compatible_from: 1
-- Unique jobs: the job that was submitted last under each key.

CREATE TABLE fencerow.unique_jobs (
    scope text NOT NULL,
    key text NOT NULL,
    job_id uuid NOT NULL,                        -- the last that was stored under the key
    first_at timestamptz NOT NULL,               -- when that was
    until_at timestamptz,                        -- the key is this job's until then, whatever becomes of it
    PRIMARY KEY (scope, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX unique_jobs_job ON fencerow.unique_jobs (job_id);
