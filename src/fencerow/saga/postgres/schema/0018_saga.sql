-- compatible_from: 1
-- Sagas: what is to be undone if a job ends without success, and the job that does it.

CREATE TABLE fencerow.sagas (
    undo_id uuid PRIMARY KEY,                    -- the compensation, a job from the end of the other one on
    job_id uuid NOT NULL,                        -- whose steps are undone
    job json NOT NULL,                           -- what is submitted then
    since timestamptz NOT NULL,
    ended_at timestamptz,                        -- when the job ended without success; NULL: it has not
    anew boolean NOT NULL DEFAULT false          -- the job was revived since, and has forgotten its steps
);
CREATE UNIQUE INDEX sagas_open ON fencerow.sagas (job_id) WHERE ended_at IS NULL;
CREATE INDEX sagas_job ON fencerow.sagas (job_id);

CREATE TABLE fencerow.saga_steps (
    undo_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL CHECK (length(name) <= 220),
    seq integer NOT NULL,                        -- they are undone from the highest down
    undo text NOT NULL,                          -- the function that undoes it, as its saga names it
    result json NOT NULL,                        -- of the step, as it is stored there
    PRIMARY KEY (undo_id, name)
);
