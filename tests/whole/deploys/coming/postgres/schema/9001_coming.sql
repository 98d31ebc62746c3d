-- compatible_from: 1
-- As CONTRIBUTING shows it.
SET LOCAL lock_timeout = '500ms';
-- In the order in which workers lock them. Both at once: rows move between them by SELECT *.
LOCK TABLE fencerow.jobs, fencerow.finished_jobs IN ACCESS EXCLUSIVE MODE;
ALTER TABLE fencerow.jobs ADD COLUMN colour text;
ALTER TABLE fencerow.finished_jobs ADD COLUMN colour text;
CREATE OR REPLACE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;

-- next transaction: what every job of the queue has
UPDATE fencerow.jobs SET colour = 'red' WHERE state = 'waiting';

-- built concurrently: the search by colour
CREATE INDEX jobs_colour ON fencerow.jobs (colour) WHERE colour IS NOT NULL;
CREATE INDEX finished_jobs_colour ON fencerow.finished_jobs (colour) WHERE colour IS NOT NULL;
