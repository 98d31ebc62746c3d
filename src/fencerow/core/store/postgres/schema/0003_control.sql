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

-- Only finished jobs that carry tags or metadata are in these: the others pay nothing, and a live job, whose row is
-- written again by its claim, would pay twice. The live ones that carry any are looked at one by one.
CREATE INDEX finished_jobs_tags ON fencerow.finished_jobs USING gin ((CAST(tags AS jsonb)) jsonb_path_ops)
    WHERE tags IS NOT NULL;
CREATE INDEX finished_jobs_metadata ON fencerow.finished_jobs USING gin ((CAST(metadata AS jsonb)) jsonb_path_ops)
    WHERE metadata IS NOT NULL;
