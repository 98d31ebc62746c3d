-- compatible_from: 1
-- What came to the hooks of gateways: see the file for PostgreSQL.

CREATE TABLE fencerow.hook_tallies (
    hook TEXT PRIMARY KEY,
    received INTEGER NOT NULL,
    received_at INTEGER,
    repeated INTEGER NOT NULL,
    repeated_at INTEGER,
    refused INTEGER NOT NULL,
    refused_at INTEGER,
    refusal TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(hook), typeof(refusal)))
) WITHOUT ROWID;
