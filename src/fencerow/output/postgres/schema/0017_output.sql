-- compatible_from: 1
-- What running jobs emit: an ordered stream, in groups of chunks.

CREATE TABLE fencerow.job_output (
    job_id uuid NOT NULL,
    last bigint NOT NULL,                        -- the offset of its last chunk: a million times the attempt, and a number
    attempt bigint NOT NULL,
    chunks integer NOT NULL CHECK (chunks BETWEEN 1 AND 1000000),
    bytes integer NOT NULL,
    data json NOT NULL,                          -- the chunks, in order
    at timestamptz NOT NULL,
    PRIMARY KEY (job_id, last)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
