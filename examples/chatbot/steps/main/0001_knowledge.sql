-- What the assistant knows: each source's chunks, replaced together.
CREATE TABLE chunks (
    source TEXT NOT NULL,
    number BIGINT NOT NULL,
    workspace TEXT NOT NULL,
    heading TEXT NOT NULL,
    text TEXT NOT NULL,
    vector TEXT NOT NULL,
    PRIMARY KEY (source, number)
);
CREATE INDEX chunks_of_workspace ON chunks (workspace);
