-- compatible_from: 1
-- Gates: where jobs wait for their turn of an exclusive key or of a limit. The jobs themselves lie where all jobs lie.

CREATE TABLE fencerow.gates (
    name TEXT PRIMARY KEY NOT NULL,
    next_at INTEGER,
    kept_for TEXT,
    kept_until INTEGER,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(name), typeof(kept_for)))
) WITHOUT ROWID;
CREATE INDEX fencerow.gates_next ON fencerow.gates (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE fencerow.passed_queues (
    gate TEXT NOT NULL,
    queue TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (gate, queue),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(gate), typeof(queue)))
) WITHOUT ROWID;

CREATE TABLE fencerow.gate_arrivals (
    id INTEGER PRIMARY KEY,
    gate TEXT NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(gate)))
);
CREATE INDEX fencerow.gate_arrivals_gate ON fencerow.gate_arrivals (gate);  -- a look takes all arrivals of its gates
