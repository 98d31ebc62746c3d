-- compatible_from: 1
-- Sagas: what is to be undone if a job ends without success, and the job that does it.

CREATE TABLE fencerow.sagas (
    undo_id TEXT NOT NULL PRIMARY KEY,
    job_id TEXT NOT NULL,
    job TEXT NOT NULL,
    since INTEGER NOT NULL,
    ended_at INTEGER,
    anew INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(undo_id), typeof(job_id), typeof(job)))
);
CREATE UNIQUE INDEX fencerow.sagas_open ON fencerow.sagas (job_id) WHERE ended_at IS NULL;
CREATE INDEX fencerow.sagas_job ON fencerow.sagas (job_id);

CREATE TABLE fencerow.saga_steps (
    undo_id TEXT NOT NULL,
    name TEXT NOT NULL CHECK (length(name) <= 220),
    seq INTEGER NOT NULL,
    undo TEXT NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (undo_id, name),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(undo_id), typeof(name), typeof(undo), typeof(result)))
);
