-- compatible_from: 1
-- Shares: whose a job is, where a queue is divided between several.

ALTER TABLE fencerow.jobs ADD COLUMN share TEXT CONSTRAINT text_not_bytes CHECK (typeof(share) <> 'blob');
ALTER TABLE fencerow.finished_jobs ADD COLUMN share TEXT CONSTRAINT text_not_bytes CHECK (typeof(share) <> 'blob');
DROP VIEW fencerow.all_jobs;
CREATE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;
CREATE INDEX fencerow.jobs_share ON fencerow.jobs (queue, priority, share, run_at, id)
    WHERE state = 'queued' AND suspect = 0 AND share IS NOT NULL;

CREATE TABLE fencerow.shares (
    queue TEXT NOT NULL,
    share TEXT NOT NULL,
    weight INTEGER NOT NULL CHECK (weight BETWEEN 1 AND 1000),
    set_at INTEGER NOT NULL,
    set_by TEXT,
    PRIMARY KEY (queue, share),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(queue), typeof(share), typeof(set_by)))
) WITHOUT ROWID;
