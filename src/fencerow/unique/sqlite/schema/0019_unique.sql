-- compatible_from: 1
-- Unique jobs: the job that was submitted last under each key.

CREATE TABLE fencerow.unique_jobs (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    until_at INTEGER,
    PRIMARY KEY (scope, key),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(scope), typeof(key), typeof(job_id)))
) WITHOUT ROWID;
CREATE INDEX fencerow.unique_jobs_job ON fencerow.unique_jobs (job_id);
