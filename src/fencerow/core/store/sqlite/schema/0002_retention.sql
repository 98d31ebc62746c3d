-- compatible_from: 1
-- Ephemeral jobs leave their id when they succeed, and nothing else. One table holds all finished jobs here, so
-- their period is always 0.

ALTER TABLE fencerow.jobs ADD COLUMN period INTEGER NOT NULL DEFAULT 0;
ALTER TABLE fencerow.jobs ADD COLUMN ephemeral INTEGER NOT NULL DEFAULT 0;
ALTER TABLE fencerow.finished_jobs ADD COLUMN period INTEGER NOT NULL DEFAULT 0;
ALTER TABLE fencerow.finished_jobs ADD COLUMN ephemeral INTEGER NOT NULL DEFAULT 0;
CREATE INDEX fencerow.jobs_ephemeral ON fencerow.jobs (ephemeral) WHERE ephemeral = 1;
DROP VIEW fencerow.all_jobs;
CREATE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;

-- The ids of ephemeral jobs that succeeded: a submit that is repeated after a lost answer finds its job here.
CREATE TABLE fencerow.spent_ids (
    id TEXT PRIMARY KEY NOT NULL,
    attempt INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id)))
) WITHOUT ROWID;
CREATE INDEX fencerow.spent_ids_age ON fencerow.spent_ids (ended_at);
