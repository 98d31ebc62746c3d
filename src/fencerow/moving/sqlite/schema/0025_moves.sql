-- compatible_from: 1
-- Moves: whether the jobs of this database go to another one, or come from it.

CREATE TABLE fencerow.moves (
    id TEXT NOT NULL PRIMARY KEY,
    side TEXT NOT NULL CHECK (side IN ('from', 'to')),
    state TEXT NOT NULL CHECK (state IN ('draining', 'closed', 'moved', 'filling', 'open')),
    other TEXT NOT NULL,
    owner TEXT,
    since INTEGER NOT NULL,
    begun_by TEXT,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id), typeof(side), typeof(state), typeof(other), typeof(owner),
        typeof(begun_by)))
);
