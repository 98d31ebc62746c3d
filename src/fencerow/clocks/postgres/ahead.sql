-- Jobs that were written while the clock stood ahead: by the clock as it is now they lie in a time to come.

-- fragment: reached
-- The latest time that a clock of somebody alive has reached: no row that was written before then lies ahead of anything.
known AS MATERIALIZED (
    SELECT clock.now, greatest(clock.now, fencerow.at(CAST(:reached_us AS bigint))) AS reached
    FROM (SELECT fencerow.now() AS now) AS clock
)

-- fragment: written
-- When it was written that the job is due then: its submit, claim or revival, or what its timeline tells last of it.
greatest(job.submitted_at, job.revived_at, job.claimed_at,
         (SELECT event.at
          FROM fencerow.job_events AS event
          WHERE event.job_id = job.id
            AND (event.kind IN ('retried', 'snoozed', 'crashed', 'timed_out', 'woken', 'moved_back')
                 OR event.kind = 'changed' AND event.detail -> 'run_at_us' IS NOT NULL)
          ORDER BY event.id DESC
          LIMIT 1))

-- fragment: lies ahead
-- Nobody runs it, it is not due, and it was written later than any clock has reached, by what no reading errs. At most by a
-- day: what a clock says that went back by more is not believed.
job.state IN ('waiting', 'queued')
AND job.run_at > known.reached
AND {{written}} > known.reached + INTERVAL '1 second'
AND {{written}} <= known.now + INTERVAL '1 day'

-- name: find_ahead
-- Of the next :limit live jobs behind :after, in the order of their ids, those that lie ahead; the last of all, and how
-- many they are.
WITH {{reached}},
part AS MATERIALIZED (
    SELECT job.id, job.run_at, {{lies ahead}} AS ahead
    FROM known CROSS JOIN fencerow.jobs AS job
    WHERE job.id > CAST(:after AS uuid)
    ORDER BY job.id
    LIMIT CAST(:limit AS integer)
)
SELECT CAST((SELECT last.id FROM part AS last ORDER BY last.id DESC LIMIT 1) AS text), count(*),
       CAST(json_agg(json_build_array(part.id, fencerow.us(part.run_at))) FILTER (WHERE part.ahead) AS text)
FROM part;

-- name: clock_reached
-- How far a living worker has seen the clock, at its last renewal or as it carries the time on. Nothing: there is none.
SELECT fencerow.us(max(greatest(
           worker.renewed_at,
           clock.now + fencerow.seconds(CAST(worker.stated ->> 'clock_behind_s' AS double precision))
       )))
FROM fencerow.workers AS worker
CROSS JOIN (SELECT fencerow.now() AS now) AS clock
WHERE worker.state = 'alive';

-- name: move_back
-- Move jobs that lie ahead back, by what they lie ahead: what was to be done at once is due now, and what had a delay has
-- it still. What else the row says of the time that never was is moved with it, so that nobody moves it twice, and whoever
-- carries a time on takes it as written now.
-- Guard: it lies ahead, and is due when it was when it was found. Whoever moved it first has changed that, and the line in
-- the timeline that says so may be newer than what this statement sees. Locked rows are left for the next look.
WITH {{reached}},
seen AS MATERIALIZED (
    SELECT CAST(each.entry ->> 0 AS uuid) AS id, CAST(each.entry ->> 1 AS bigint) AS run_at_us
    FROM json_array_elements(CAST(:seen AS json)) AS each (entry)
),
late AS MATERIALIZED (
    SELECT job.id, {{written}} - known.reached AS ahead
    FROM known CROSS JOIN seen JOIN fencerow.jobs AS job ON job.id = seen.id
    WHERE fencerow.us(job.run_at) = seen.run_at_us
      AND {{lies ahead}}
    FOR UPDATE OF job SKIP LOCKED
)
UPDATE fencerow.jobs AS job
SET run_at = job.run_at - late.ahead,
    submitted_at = CASE WHEN job.submitted_at > known.reached THEN job.submitted_at - late.ahead ELSE job.submitted_at END,
    revived_at = CASE WHEN job.revived_at > known.reached THEN job.revived_at - late.ahead ELSE job.revived_at END,
    claimed_at = CASE WHEN job.claimed_at > known.reached THEN job.claimed_at - late.ahead ELSE job.claimed_at END,
    turned_at = CASE WHEN job.turned_at > known.reached THEN job.turned_at - late.ahead ELSE job.turned_at END
FROM late, known
WHERE job.id = late.id
RETURNING job.id, job.queue, job.priority, fencerow.us(job.run_at), job.state = 'waiting', fencerow.lane(job), job.gate;

-- name: note_moved_back
-- Tell in the timelines that jobs were moved back. Part of the transaction that did; its rows are locked.
INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
SELECT job.id, job.attempt, fencerow.now(), 'moved_back', CAST(:actor AS text), note.detail
FROM json_to_recordset(CAST(:notes AS json)) AS note (id uuid, detail json)
JOIN fencerow.jobs AS job ON job.id = note.id;
