-- compatible_from: 1
-- As CONTRIBUTING shows it.
ALTER TABLE fencerow.jobs ADD COLUMN colour TEXT CONSTRAINT text_not_bytes CHECK (typeof(colour) <> 'blob');
ALTER TABLE fencerow.finished_jobs ADD COLUMN colour TEXT CONSTRAINT text_not_bytes CHECK (typeof(colour) <> 'blob');
DROP VIEW fencerow.all_jobs;
CREATE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;

-- next transaction: the search by colour
CREATE INDEX fencerow.jobs_colour ON fencerow.jobs (colour) WHERE colour IS NOT NULL;
CREATE INDEX fencerow.finished_jobs_colour ON fencerow.finished_jobs (colour) WHERE colour IS NOT NULL;
