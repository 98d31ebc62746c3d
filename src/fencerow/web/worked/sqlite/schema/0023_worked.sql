-- compatible_from: 1
-- Jobs worked over HTTP: the attempts that an endpoint may answer later, each by a token of its own.

CREATE TABLE fencerow.worked_attempts (
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    digest TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    until INTEGER NOT NULL,
    give_up_at INTEGER NOT NULL,
    silent_s REAL NOT NULL,
    deferred INTEGER NOT NULL DEFAULT 0,
    look_at INTEGER,
    answered_at INTEGER,
    outcome TEXT CHECK (outcome IN ('succeeded', 'failed', 'closed')),
    answer TEXT,
    PRIMARY KEY (job_id, attempt),
    CHECK ((outcome IS NULL) = (answered_at IS NULL)),
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(job_id), typeof(digest), typeof(outcome), typeof(answer)))
) WITHOUT ROWID;
CREATE INDEX fencerow.worked_attempts_due ON fencerow.worked_attempts (look_at, job_id) WHERE look_at IS NOT NULL;
