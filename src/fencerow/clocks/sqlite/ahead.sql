-- Jobs that were written while the clock stood ahead: by the clock as it is now they lie in a time to come.

-- fragment: reached
-- The latest time that a clock of somebody alive has reached: no row that was written before then lies ahead of anything.
known AS MATERIALIZED (
    SELECT clock.now, max(clock.now, :reached_us) AS reached
    FROM (SELECT fencerow.now() AS now) AS clock
)

-- fragment: written
-- When it was written that the job is due then: its submit, claim or revival, or what its timeline tells last of it.
max(job.submitted_at, COALESCE(job.revived_at, 0), COALESCE(job.claimed_at, 0),
    COALESCE((SELECT event.at
              FROM fencerow.job_events AS event
              WHERE event.job_id = job.id
                AND (event.kind IN ('retried', 'snoozed', 'crashed', 'timed_out', 'woken', 'moved_back')
                     OR event.kind = 'changed' AND json_extract(event.detail, '$.run_at_us') IS NOT NULL)
              ORDER BY event.id DESC
              LIMIT 1), 0))

-- fragment: lies ahead
-- Nobody runs it, it is not due, and it was written later than any clock has reached, by what no reading errs. At most by a
-- day: what a clock says that went back by more is not believed.
job.state IN ('waiting', 'queued')
AND job.run_at > known.reached
AND {{written}} > known.reached + 1000000
AND {{written}} <= known.now + 86400000000

-- name: find_ahead
-- Of the next :limit live jobs behind :after, in the order of their ids, those that lie ahead; the last of all, and how
-- many they are.
WITH {{reached}},
part AS MATERIALIZED (
    SELECT job.id, job.run_at, {{lies ahead}} AS ahead
    FROM known CROSS JOIN fencerow.jobs AS job
    WHERE job.id > :after
    ORDER BY job.id
    LIMIT :limit
)
SELECT max(part.id), count(*), json_group_array(json_array(part.id, part.run_at)) FILTER (WHERE part.ahead)
FROM part;

-- name: clock_reached
-- How far a living worker has seen the clock, at its last renewal or as it carries the time on. Nothing: there is none.
SELECT max(max(
           worker.renewed_at,
           fencerow.now() + CAST(COALESCE(json_extract(worker.stated, '$.clock_behind_s'), 0) * 1000000 AS INTEGER)
       ))
FROM fencerow.workers AS worker
WHERE worker.state = 'alive';

-- name: move_back
-- Move jobs that lie ahead back, by what they lie ahead: what was to be done at once is due now, and what had a delay has
-- it still. What else the row says of the time that never was is moved with it, so that nobody moves it twice, and whoever
-- carries a time on takes it as written now.
-- Guard: it lies ahead, and is due when it was when it was found. Whoever moved it first has changed that.
WITH {{reached}},
late AS MATERIALIZED (
    SELECT job.id, {{written}} - known.reached AS ahead, known.reached
    FROM known CROSS JOIN json_each(:seen) AS seen
    JOIN fencerow.jobs AS job ON job.id = json_extract(seen.value, '$[0]')
    WHERE job.run_at = json_extract(seen.value, '$[1]')
      AND {{lies ahead}}
)
UPDATE fencerow.jobs
SET run_at = run_at - late.ahead,
    submitted_at = CASE WHEN submitted_at > late.reached THEN submitted_at - late.ahead ELSE submitted_at END,
    revived_at = CASE WHEN revived_at > late.reached THEN revived_at - late.ahead ELSE revived_at END,
    claimed_at = CASE WHEN claimed_at > late.reached THEN claimed_at - late.ahead ELSE claimed_at END,
    turned_at = CASE WHEN turned_at > late.reached THEN turned_at - late.ahead ELSE turned_at END
FROM late
WHERE fencerow.jobs.id = late.id
RETURNING id, queue, priority, run_at, state = 'waiting', lane, gate;

-- name: note_moved_back
-- Tell in the timelines that jobs were moved back. Part of the transaction that did.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'moved_back', :actor, json_extract(note.value, '$.detail')
FROM json_each(:notes) AS note
JOIN fencerow.jobs AS job ON job.id = json_extract(note.value, '$.id');
