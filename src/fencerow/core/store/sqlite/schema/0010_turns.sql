-- compatible_from: 1
-- Turns: jobs that run one at a time for each key, or few at a time, wait at a gate until it is their turn.

ALTER TABLE fencerow.jobs ADD COLUMN exclusive TEXT CONSTRAINT text_not_bytes CHECK (typeof(exclusive) <> 'blob');
ALTER TABLE fencerow.jobs ADD COLUMN exclusive_slots INTEGER;
ALTER TABLE fencerow.jobs ADD COLUMN strict INTEGER NOT NULL DEFAULT 0;
-- Ends and looks at limits take the names of many jobs apart: what is no list would stop them all.
ALTER TABLE fencerow.jobs ADD COLUMN limits TEXT
    CHECK (limits IS NULL OR CASE WHEN typeof(limits) = 'text' AND json_valid(limits) THEN json_type(limits) = 'array' ELSE 0 END);
ALTER TABLE fencerow.jobs ADD COLUMN gate TEXT CONSTRAINT text_not_bytes CHECK (typeof(gate) <> 'blob');
ALTER TABLE fencerow.jobs ADD COLUMN turned_at INTEGER;
ALTER TABLE fencerow.finished_jobs ADD COLUMN exclusive TEXT CONSTRAINT text_not_bytes CHECK (typeof(exclusive) <> 'blob');
ALTER TABLE fencerow.finished_jobs ADD COLUMN exclusive_slots INTEGER;
ALTER TABLE fencerow.finished_jobs ADD COLUMN strict INTEGER NOT NULL DEFAULT 0;
ALTER TABLE fencerow.finished_jobs ADD COLUMN limits TEXT CONSTRAINT text_not_bytes CHECK (typeof(limits) <> 'blob');
ALTER TABLE fencerow.finished_jobs ADD COLUMN gate TEXT CONSTRAINT text_not_bytes CHECK (typeof(gate) <> 'blob');
ALTER TABLE fencerow.finished_jobs ADD COLUMN turned_at INTEGER;
DROP VIEW fencerow.all_jobs;
CREATE VIEW fencerow.all_jobs AS SELECT * FROM fencerow.jobs UNION ALL SELECT * FROM fencerow.finished_jobs;
CREATE INDEX fencerow.jobs_gate ON fencerow.jobs (gate, priority DESC, run_at, id)
    WHERE state = 'waiting' AND gate IS NOT NULL;
CREATE INDEX fencerow.jobs_turned ON fencerow.jobs (exclusive, exclusive_slots)
    WHERE state IN ('queued', 'running') AND exclusive IS NOT NULL;
CREATE INDEX fencerow.jobs_limited ON fencerow.jobs (limits)
    WHERE state IN ('queued', 'running') AND limits IS NOT NULL;
CREATE INDEX fencerow.jobs_passed ON fencerow.jobs (gate, queue, turned_at)
    WHERE state = 'waiting' AND gate IS NOT NULL AND turned_at IS NOT NULL;
-- Whether any job needs turns at all: what ends ask before they look further.
CREATE INDEX fencerow.jobs_gated ON fencerow.jobs (id) WHERE exclusive IS NOT NULL OR limits IS NOT NULL;

CREATE TABLE fencerow.gates (
    name TEXT PRIMARY KEY NOT NULL,
    next_at INTEGER,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name)))
) WITHOUT ROWID;
CREATE INDEX fencerow.gates_next ON fencerow.gates (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE fencerow.gate_arrivals (
    id INTEGER PRIMARY KEY,
    gate TEXT NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(gate)))
);
CREATE INDEX fencerow.gate_arrivals_gate ON fencerow.gate_arrivals (gate);  -- a look takes all arrivals of its gates
