-- compatible_from: 1

-- --- Ids that were submitted again -----------------------------------------------------------------------------------
-- A submit whose answer was lost is repeated; a first statement that comes after its repeat finds the id here and is
-- refused. Rows go by age.
CREATE TABLE fencerow.repeated_ids (
    id TEXT PRIMARY KEY NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX fencerow.repeated_ids_age ON fencerow.repeated_ids (at);

-- --- Jobs that have ended and could not be moved ------------------------------------------------------------------
-- Maintenance looks for them and moves them when the database lets it. There are none, as a rule.
CREATE INDEX fencerow.jobs_parked ON fencerow.jobs (ended_at)
    WHERE state IN ('succeeded', 'failed', 'cancelled') AND ended_at IS NOT NULL;
