-- compatible_from: 1
-- Affinity: jobs that only workers with a label take, for ever or for a while.

ALTER TABLE fencerow.jobs ADD COLUMN affinity TEXT CONSTRAINT text_not_bytes CHECK (typeof(affinity) <> 'blob'); -- the label of its worker
ALTER TABLE fencerow.jobs ADD COLUMN affinity_wait_s REAL;  -- after which, from when it is due, anybody may; NULL: never
ALTER TABLE fencerow.finished_jobs ADD COLUMN affinity TEXT CONSTRAINT text_not_bytes CHECK (typeof(affinity) <> 'blob');
ALTER TABLE fencerow.finished_jobs ADD COLUMN affinity_wait_s REAL;
DROP VIEW fencerow.all_jobs;
CREATE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;
CREATE INDEX fencerow.jobs_affinity ON fencerow.jobs (queue, affinity, priority DESC, run_at, id)
    WHERE state = 'waiting' AND affinity IS NOT NULL AND suspect = 0;
CREATE INDEX fencerow.jobs_affinity_suspect ON fencerow.jobs (queue, affinity, run_at, id)
    WHERE state = 'waiting' AND affinity IS NOT NULL AND suspect = 1;
CREATE INDEX fencerow.jobs_fallback ON fencerow.jobs (run_at + CAST(affinity_wait_s * 1000000 AS INTEGER))
    WHERE state = 'waiting' AND affinity IS NOT NULL AND affinity_wait_s IS NOT NULL;
