-- compatible_from: 1
-- What running jobs emit: an ordered stream, in groups of chunks.

CREATE TABLE fencerow.job_output (
    job_id TEXT NOT NULL,
    last INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    chunks INTEGER NOT NULL CHECK (chunks BETWEEN 1 AND 1000000),
    bytes INTEGER NOT NULL,
    data TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (job_id, last),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(data)))
) WITHOUT ROWID;
