-- Backfills of a user's table: each lane is a row, and the range after its cursor is the next.
--
-- Taking a lane locks its row until the transaction ends, and so every range and its cursor are one commit.

-- name: make_backfill
-- Make a lane. Guard: there is none of that name and number; another that makes it just now is waited for.
INSERT INTO fencerow.backfills
    (name, lane, target, kind, state, first_key, last_key, rows_planned, started_at, run_at, moved_at)
SELECT :name, CAST(:lane AS integer), :target, :kind, :state, CAST(:first_key AS text), CAST(:last_key AS text),
       CAST(:rows_planned AS bigint), at.now, at.now, at.now
FROM (SELECT fencerow.now() AS now) AS at
ON CONFLICT (name, lane) DO NOTHING
RETURNING run;

-- name: read_backfills
-- Every lane of one backfill, or of all.
SELECT fill.name, fill.lane, fill.target, fill.kind, fill.state, fill.run, fill.first_key, fill.last_key, fill.cursor,
       fill.rows_done, fill.ranges_done, fill.rows_planned, fill.failures, fill.failed_first, fill.failed_last,
       fill.error, fencerow.us(fill.run_at), fill.run_rows, fencerow.us(fill.moved_at)
FROM fencerow.backfills AS fill
WHERE CAST(:name AS text) IS NULL OR fill.name = :name
ORDER BY fill.name, fill.lane;

-- name: take_backfill
-- Lock a lane for its next range. Guard: it runs, in this run, and no newer attempt is at work on it.
UPDATE fencerow.backfills
SET attempt = CAST(:attempt AS bigint)
WHERE name = :name
  AND lane = CAST(:lane AS integer)
  AND run = CAST(:run AS integer)
  AND state = 'running'
  AND attempt <= CAST(:attempt AS bigint)
RETURNING kind, first_key, last_key, cursor, failures;

-- name: move_backfill
-- Note a range in the transaction that wrote it. Guard: the lane still stands where it was taken, in this attempt.
UPDATE fencerow.backfills
SET cursor = :last,
    rows_done = rows_done + CAST(:rows AS bigint),
    ranges_done = ranges_done + 1,
    failures = 0,
    failed_first = NULL,
    failed_last = NULL,
    error = NULL,
    moved_at = fencerow.now()
WHERE name = :name
  AND lane = CAST(:lane AS integer)
  AND run = CAST(:run AS integer)
  AND state = 'running'
  AND attempt = CAST(:attempt AS bigint)
  AND cursor IS NOT DISTINCT FROM CAST(:cursor AS text)
RETURNING lane;

-- name: end_backfill
-- End a lane whose last range is done. Guard: as for a range.
UPDATE fencerow.backfills
SET state = 'done', moved_at = fencerow.now()
WHERE name = :name
  AND lane = CAST(:lane AS integer)
  AND run = CAST(:run AS integer)
  AND state = 'running'
  AND attempt = CAST(:attempt AS bigint)
RETURNING lane;

-- name: fail_backfill
-- Count a failure of the next range and name it; at the last the lane stops there.
-- Guard: no newer attempt is at work on it. Taking the lane was rolled back with the range, so it is done here.
UPDATE fencerow.backfills
SET attempt = CAST(:attempt AS bigint),
    failures = failures + 1,
    failed_first = CAST(:first AS text),
    failed_last = CAST(:last AS text),
    error = :error,
    state = CASE WHEN failures + 1 >= CAST(:failures_max AS integer) THEN 'failed' ELSE state END
WHERE name = :name
  AND lane = CAST(:lane AS integer)
  AND run = CAST(:run AS integer)
  AND state = 'running'
  AND attempt <= CAST(:attempt AS bigint)
RETURNING failures, state;

-- name: pause_backfill
-- Stop a backfill after the ranges that are under way. Guard: only what runs.
UPDATE fencerow.backfills SET state = 'paused' WHERE name = :name AND state = 'running' RETURNING lane;

-- name: resume_backfill
-- Let every lane that is not done go on in a new run, whatever became of the jobs of the last. Guard: not done.
UPDATE fencerow.backfills
SET state = 'running', run = run + 1, attempt = 0, failures = 0, run_at = fencerow.now(), run_rows = rows_done
WHERE name = :name AND state <> 'done'
RETURNING lane, run;

-- name: forget_backfill
-- Forget a backfill, so that it can be started anew. Guard: nothing of it runs.
DELETE FROM fencerow.backfills AS fill
WHERE fill.name = :name
  AND NOT EXISTS (
      SELECT 1 FROM fencerow.backfills AS other WHERE other.name = :name AND other.state = 'running'
  )
RETURNING fill.lane;

-- name: estimated_rows
-- How many rows a table has as far as the server knows; below zero it does not.
SELECT CAST(rel.reltuples AS bigint) FROM pg_class AS rel WHERE rel.oid = to_regclass(CAST(:target AS text));

-- name: replication_lag
-- How many seconds the slowest replica is behind in what it shows; 0 without one, or where the role may not see it.
SELECT CAST(coalesce(max(extract(epoch FROM rep.replay_lag)), 0) AS double precision) FROM pg_stat_replication AS rep;
