-- Backfills of a user's table: each lane is a row, and the range after its cursor is the next. The transaction that
-- takes a lane has the file's one write lock, and so every range and its cursor are one commit.

-- name: make_backfill
-- Make a lane. Guard: there is none of that name and number.
INSERT INTO fencerow.backfills
    (name, lane, target, kind, state, first_key, last_key, rows_planned, started_at, run_at, moved_at)
SELECT :name, :lane, :target, :kind, :state, :first_key, :last_key, :rows_planned,
       fencerow.now(), fencerow.now(), fencerow.now()
WHERE true
ON CONFLICT (name, lane) DO NOTHING
RETURNING run;

-- name: read_backfills
-- Every lane of one backfill, or of all.
SELECT fill.name, fill.lane, fill.target, fill.kind, fill.state, fill.run, fill.first_key, fill.last_key, fill.cursor,
       fill.rows_done, fill.ranges_done, fill.rows_planned, fill.failures, fill.failed_first, fill.failed_last,
       fill.error, fill.run_at, fill.run_rows, fill.moved_at
FROM fencerow.backfills AS fill
WHERE :name IS NULL OR fill.name = :name
ORDER BY fill.name, fill.lane;

-- name: take_backfill
-- Lock a lane for its next range. Guard: it runs, in this run, and no newer attempt is at work on it.
UPDATE fencerow.backfills
SET attempt = :attempt
WHERE name = :name AND lane = :lane AND run = :run AND state = 'running' AND attempt <= :attempt
RETURNING kind, first_key, last_key, cursor, failures;

-- name: move_backfill
-- Note a range in the transaction that wrote it. Guard: the lane still stands where it was taken, in this attempt.
UPDATE fencerow.backfills
SET cursor = :last,
    rows_done = rows_done + :rows,
    ranges_done = ranges_done + 1,
    failures = 0,
    failed_first = NULL,
    failed_last = NULL,
    error = NULL,
    moved_at = fencerow.now()
WHERE name = :name
  AND lane = :lane
  AND run = :run
  AND state = 'running'
  AND attempt = :attempt
  AND cursor IS :cursor
RETURNING lane;

-- name: end_backfill
-- End a lane whose last range is done. Guard: as for a range.
UPDATE fencerow.backfills
SET state = 'done', moved_at = fencerow.now()
WHERE name = :name AND lane = :lane AND run = :run AND state = 'running' AND attempt = :attempt
RETURNING lane;

-- name: fail_backfill
-- Count a failure of the next range and name it; at the last the lane stops there.
-- Guard: no newer attempt is at work on it. Taking the lane was rolled back with the range, so it is done here.
UPDATE fencerow.backfills
SET attempt = :attempt,
    failures = failures + 1,
    failed_first = :first,
    failed_last = :last,
    error = :error,
    state = CASE WHEN failures + 1 >= :failures_max THEN 'failed' ELSE state END
WHERE name = :name AND lane = :lane AND run = :run AND state = 'running' AND attempt <= :attempt
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
DELETE FROM fencerow.backfills
WHERE name = :name
  AND NOT EXISTS (
      SELECT 1 FROM fencerow.backfills AS other WHERE other.name = :name AND other.state = 'running'
  )
RETURNING lane;

-- name: estimated_rows
-- SQLite keeps no estimate: below zero, it does not know.
SELECT -1 WHERE :target IS NOT NULL;

-- name: replication_lag
-- A file has no replicas.
SELECT 0.0;
