-- Periods: finished jobs of one state and one stretch of time lie in a table of their own, a partition of
-- finished_jobs. Retention removes the table. Only the tables' owner can do this; others' retention goes by rows.

-- name: try_periods_lock
-- One maker of partitions at a time: who does not get the lock leaves it to the other.
SELECT pg_try_advisory_xact_lock(:lock);

-- name: periods
-- The periods in order, and what became of the table of each: attached, detaching, detached, or gone.
SELECT period.id, period.state, fencerow.us(period.starts_at), fencerow.us(period.ends_at),
       period.closed_at IS NOT NULL, fencerow.us((SELECT fencerow.now())),
       CASE WHEN leaf.oid IS NULL THEN 'gone'
            WHEN link.inhrelid IS NULL THEN 'detached'
            WHEN link.inhdetachpending THEN 'detaching'
            ELSE 'attached' END
FROM fencerow.finished_periods AS period
LEFT JOIN pg_class AS leaf
       ON leaf.relname = 'finished_' || period.state || '_' || period.id
      AND leaf.relnamespace = (SELECT typnamespace FROM pg_type
                               WHERE oid = pg_typeof(CAST(NULL AS fencerow.finished_periods)))
LEFT JOIN pg_inherits AS link ON link.inhrelid = leaf.oid
ORDER BY period.id;

-- name: owns_periods
-- Whether this role may make, detach and drop partitions: it owns the table. One that merely belongs to the owner, or
-- may do everything, would leave partitions that the owner cannot drop.
SELECT pg_get_userbyid(relation.relowner) = current_user
FROM pg_class AS relation
WHERE relation.oid = (SELECT typrelid FROM pg_type WHERE oid = pg_typeof(CAST(NULL AS fencerow.finished_jobs)));

-- name: open_period
-- Begin a period where the last of the state ends, or shortly. Never at once: a statement that was planned before
-- the partition was there must not look for it.
INSERT INTO fencerow.finished_periods (state, starts_at, ends_at)
SELECT :state, begin.at, begin.at + fencerow.seconds(CAST(:length_s AS double precision))
FROM (SELECT GREATEST(max(period.ends_at), (SELECT fencerow.now()) + INTERVAL '10 seconds') AS at
      FROM fencerow.finished_periods AS period
      WHERE period.state = :state) AS begin
RETURNING id;

-- name: make_partition
-- Make a period's table. It is made beside the others and attached, which locks nobody out; CREATE ... PARTITION OF
-- would wait for every reader.
CREATE TABLE fencerow.own_schema.:"partition" (LIKE fencerow.finished_jobs INCLUDING ALL);
ALTER TABLE fencerow.own_schema.:"partition"
    ADD PRIMARY KEY (id),
    ADD CHECK (period = :'period');
CREATE INDEX ON fencerow.own_schema.:"partition" (state, ended_at);
CREATE INDEX ON fencerow.own_schema.:"partition" (scope, key) WHERE key IS NOT NULL;
ALTER TABLE fencerow.finished_jobs ATTACH PARTITION fencerow.own_schema.:"partition" FOR VALUES IN (:'period');

-- name: close_periods
-- Let nothing more into periods of a state that ended longer ago than the age. The first step of their end: it is
-- committed before a partition is touched, so a statement that still sees one open also still sees its partition.
-- Guard: open, and old.
UPDATE fencerow.finished_periods AS period
SET closed_at = (SELECT fencerow.now())
WHERE period.state = :state
  AND period.closed_at IS NULL
  AND period.ends_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
RETURNING period.id;

-- name: forget_lost_periods
-- Forget open periods whose table somebody has detached or dropped by hand: jobs that end would look for it for ever.
-- The table itself, if there is one, is left to whoever did that.
DELETE FROM fencerow.finished_periods AS period
WHERE period.closed_at IS NULL
  AND NOT EXISTS (
        SELECT 1
        FROM pg_inherits AS link
        JOIN pg_class AS leaf ON leaf.oid = link.inhrelid
        WHERE link.inhparent = (SELECT typrelid FROM pg_type
                                WHERE oid = pg_typeof(CAST(NULL AS fencerow.finished_jobs)))
          AND leaf.relname = 'finished_' || period.state || '_' || period.id
          AND NOT link.inhdetachpending
    )
RETURNING period.id;

-- name: take_period
-- Take the oldest closed period that nobody works on; who died over one is followed after a minute.
UPDATE fencerow.finished_periods AS period
SET taken_at = (SELECT fencerow.now())
WHERE period.id = ANY(ARRAY(
        SELECT closed.id
        FROM fencerow.finished_periods AS closed
        WHERE closed.closed_at IS NOT NULL
          AND (closed.taken_at IS NULL OR closed.taken_at < (SELECT fencerow.now()) - INTERVAL '1 minute')
        ORDER BY closed.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ))
RETURNING period.id;

-- name: leave_period
-- Let the next one work on a period that could not be ended now.
UPDATE fencerow.finished_periods SET taken_at = NULL WHERE id = CAST(:id AS bigint) RETURNING id;

-- name: forget_period_events
-- Remove some of what was noted about the jobs of a closed period, before it goes.
DELETE FROM fencerow.job_events AS note
WHERE note.ctid = ANY(ARRAY(
        SELECT old.ctid
        FROM fencerow.job_events AS old
        JOIN fencerow.own_schema.:"partition" AS job ON job.id = old.job_id
        LIMIT CAST(:'limit' AS integer)
    ))
RETURNING note.id;

-- name: forget_period_logs
-- The same for the lines that were kept.
DELETE FROM fencerow.job_logs AS note
WHERE note.ctid = ANY(ARRAY(
        SELECT old.ctid
        FROM fencerow.job_logs AS old
        JOIN fencerow.own_schema.:"partition" AS job ON job.id = old.job_id
        LIMIT CAST(:'limit' AS integer)
    ))
RETURNING note.id;

-- name: forget_period_progress
-- The same for progress.
DELETE FROM fencerow.job_progress AS note
WHERE note.ctid = ANY(ARRAY(
        SELECT old.ctid
        FROM fencerow.job_progress AS old
        JOIN fencerow.own_schema.:"partition" AS job ON job.id = old.job_id
        LIMIT CAST(:'limit' AS integer)
    ))
RETURNING note.job_id;

-- name: detach_period
-- Take a period's table out of the finished jobs. It waits for those who read them, and nobody waits for it: a
-- plain DROP of an attached one would make every acknowledgement wait behind any reader.
ALTER TABLE fencerow.finished_jobs DETACH PARTITION fencerow.own_schema.:"partition" CONCURRENTLY;

-- name: finalize_period
-- Finish a detachment that was cut off.
ALTER TABLE fencerow.finished_jobs DETACH PARTITION fencerow.own_schema.:"partition" FINALIZE;

-- name: drop_period
-- Drop the table of a period that is detached; forget_period follows in the same transaction.
DROP TABLE IF EXISTS fencerow.own_schema.:"partition";

-- name: forget_period
-- Forget a period whose table is gone.
DELETE FROM fencerow.finished_periods WHERE id = CAST(:id AS bigint) AND closed_at IS NOT NULL RETURNING id;
