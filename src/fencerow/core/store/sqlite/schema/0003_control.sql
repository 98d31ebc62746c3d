-- compatible_from: 1
-- Jobs that are found by their tags and metadata: those that carry any, the newest id first. The columns with which
-- workers are changed while they run lie in the workers' own file, see widen_workers.
CREATE INDEX fencerow.jobs_labelled ON fencerow.jobs (id) WHERE tags IS NOT NULL OR metadata IS NOT NULL;
CREATE INDEX fencerow.finished_jobs_labelled ON fencerow.finished_jobs (id)
    WHERE tags IS NOT NULL OR metadata IS NOT NULL;
