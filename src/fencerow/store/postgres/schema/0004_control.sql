-- compatible_from: 1
-- Workers that can be changed while they run, and jobs that are found by their tags and metadata.

-- What a worker says of itself at each renewal, and what operators want of it. A worker of an earlier release leaves
-- `stated` empty and is not given orders.
ALTER TABLE fencerow.workers
    ADD COLUMN stated json,
    ADD COLUMN wanted json,
    ADD COLUMN wanted_version bigint NOT NULL DEFAULT 0,
    ADD COLUMN wanted_at timestamptz,
    ADD COLUMN wanted_by text,
    ADD COLUMN wanted_reason text;

-- Only jobs that carry tags or metadata are in these, so the others pay nothing. They are built under a lock that
-- lets readers pass and makes writers wait: some seconds for each million of finished jobs.
CREATE INDEX jobs_tags ON fencerow.jobs USING gin ((CAST(tags AS jsonb)) jsonb_path_ops) WHERE tags IS NOT NULL;
CREATE INDEX jobs_metadata ON fencerow.jobs USING gin ((CAST(metadata AS jsonb)) jsonb_path_ops)
    WHERE metadata IS NOT NULL;
CREATE INDEX finished_jobs_tags ON fencerow.finished_jobs USING gin ((CAST(tags AS jsonb)) jsonb_path_ops)
    WHERE tags IS NOT NULL;
CREATE INDEX finished_jobs_metadata ON fencerow.finished_jobs USING gin ((CAST(metadata AS jsonb)) jsonb_path_ops)
    WHERE metadata IS NOT NULL;
