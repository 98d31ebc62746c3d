-- compatible_from: 1
-- What came to the hooks of gateways: counted by each gateway, and added here now and then.

CREATE TABLE fencerow.hook_tallies (
    hook text COLLATE "C" PRIMARY KEY,
    received bigint NOT NULL,                    -- that became a job
    received_at timestamptz,                     -- the latest of them
    repeated bigint NOT NULL,                    -- that had come before
    repeated_at timestamptz,
    refused bigint NOT NULL,                     -- of which nothing was stored
    refused_at timestamptz,
    refusal text                                 -- of the latest, in words of ours: nothing of what was sent
) WITH (fillfactor = 50);
