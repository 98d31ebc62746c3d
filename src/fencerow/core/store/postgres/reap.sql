-- Reaping: what the dead held goes back. Safe in every worker at once: rows are skipped when locked, guards repeat
-- state and holder, and dead holders are named by value. (An anti-join "not among the living" took jobs from a
-- worker that had registered after its snapshot.)

-- name: die
-- Declare workers dead whose lease has run out. A dead worker can never renew; it must register anew.
-- Guard: alive, and past its lease by the database's clock; one that renews right now is skipped.
-- Guard of the judge: alive and within its own lease, at the same instant, and not later than what it knew when it
-- judged: a statement that a network delivers after an outage finds everybody late, and buries nobody.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now)
UPDATE fencerow.workers AS worker
SET state = 'dead',
    ended_at = (SELECT clock.now FROM clock)
WHERE worker.id = ANY(ARRAY(
        SELECT late.id
        FROM fencerow.workers AS late
        WHERE late.state = 'alive'
          AND late.lease_until < (SELECT clock.now FROM clock)
        ORDER BY late.lease_until
        LIMIT 100
        FOR UPDATE SKIP LOCKED
    ))
  AND worker.state = 'alive'
  AND worker.lease_until < (SELECT clock.now FROM clock)
  AND EXISTS (SELECT 1 FROM fencerow.workers AS judge
              WHERE judge.id = CAST(:judge AS uuid)
                AND judge.state = 'alive'
                AND judge.lease_until > (SELECT clock.now FROM clock))
  AND (SELECT clock.now FROM clock) < fencerow.at(CAST(:until_us AS bigint))
RETURNING worker.id;

-- name: leases_ahead
-- Living workers whose lease ends later than one that were written now: it was written before the clock went back.
SELECT worker.id, fencerow.us(worker.renewed_at), worker.lease_s
FROM fencerow.workers AS worker
WHERE worker.state = 'alive'
  AND worker.lease_until > (SELECT fencerow.now()) + fencerow.seconds(worker.lease_s)
ORDER BY worker.lease_until DESC
LIMIT 1000;

-- name: die_ahead
-- Declare workers dead whose lease was written before the clock went back: it would hold until the clock returns.
-- The judge has watched each for a whole lease by its own clock, and names the renewal that it saw last.
-- Guard: alive, not renewed since, and its lease still lies ahead of one that were written now. One that renews right
-- now is skipped. Guard of the judge as in die.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
silent AS MATERIALIZED (
    SELECT CAST(each.entry ->> 0 AS uuid) AS id, CAST(each.entry ->> 1 AS bigint) AS renewed_us
    FROM json_array_elements(CAST(:silent AS json)) AS each (entry)
)
UPDATE fencerow.workers AS worker
SET state = 'dead',
    ended_at = clock.now
FROM silent, clock
WHERE worker.id = ANY(ARRAY(
        SELECT late.id
        FROM fencerow.workers AS late
        WHERE late.id = ANY(ARRAY(SELECT silent.id FROM silent))
        FOR UPDATE SKIP LOCKED
    ))
  AND worker.id = silent.id
  AND worker.state = 'alive'
  AND fencerow.us(worker.renewed_at) = silent.renewed_us
  AND worker.lease_until > clock.now + fencerow.seconds(worker.lease_s)
  AND EXISTS (SELECT 1 FROM fencerow.workers AS judge
              WHERE judge.id = CAST(:judge AS uuid)
                AND judge.state = 'alive'
                AND judge.lease_until > clock.now)
  AND clock.now < fencerow.at(CAST(:until_us AS bigint))
RETURNING worker.id;

-- name: lost_holders
-- Holders of running jobs that have no row (a restore, a failover).
-- A holder registers before it claims, so a snapshot that shows its job shows its row.
SELECT DISTINCT job.holder
FROM fencerow.jobs AS job
WHERE job.state = 'running'
  AND NOT EXISTS (SELECT 1 FROM fencerow.workers AS worker WHERE worker.id = job.holder OFFSET 0);

-- name: adopt
-- Give holders that were found without a row a dead one, so that reclaim can name them.
-- Guard: there is no row.
INSERT INTO fencerow.workers (id, state, name, host, pid, lease_s, registered_at, renewed_at, lease_until, ended_at)
SELECT lost.holder, 'dead', 'unknown', 'unknown', 0, 0, clock.now, clock.now, clock.now, clock.now
FROM unnest(CAST(:holders AS uuid[])) AS lost (holder)
CROSS JOIN (SELECT fencerow.now() AS now) AS clock
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: dead_holders
-- The dead that still hold running jobs. Asked at every sweep, so that a claim which raced its holder's death is found.
SELECT worker.id
FROM fencerow.workers AS worker
WHERE worker.state IN ('dead', 'retired')
  AND EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.holder = worker.id AND job.state = 'running' OFFSET 0)
LIMIT 100;

-- name: reclaim
-- Take running jobs back from dead holders, as suspects, but for those that had not begun: a worker begins the jobs of
-- one lane, name and time limit in the order in which it claimed them, and no more than its row says before an end is
-- confirmed. What stands further back goes first, so that a batch of this statement leaves the places as they are.
-- A death counts a crash against a job that was noted to run alone there; nobody knows which of several it was, so there
-- it counts nothing. Lest a job that always takes its worker along runs for ever, one that saw :deaths_per_crash times
-- its crash budget of workers die, with no attempt that came to an end in between, fails too. Finals are moved by
-- archive in the same transaction.
-- Guard: running under one of these holders, named by value; locked rows are left for the next sweep.
-- The job keeps its place in its lane; one that lies ahead, because the clock went back since, is now.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
line AS MATERIALIZED (
    SELECT job.id,
           NOT job.suspect
           AND row_number() OVER (PARTITION BY job.holder, job.queue, job.priority, fencerow.lane(job), job.name, job.timeout_s
                                  ORDER BY job.claimed_at, job.run_at, job.id)
               > CASE WHEN worker.stated ->> 'begun_max' ~ '^[0-9]{1,9}$'
                      THEN CAST(worker.stated ->> 'begun_max' AS bigint) END AS waited
    FROM fencerow.jobs AS job
    JOIN fencerow.workers AS worker ON worker.id = job.holder
    WHERE job.holder = ANY(CAST(:dead AS uuid[]))
      AND job.state = 'running'
),
found AS MATERIALIZED (
    SELECT job.id, job.attempt, job.holder, job.claimed_at, job.cancel_requested_at, job.crashes, job.crashes_max,
           job.id IN (SELECT line.id FROM line WHERE line.waited) AS waited  -- hashed, whatever the planner believes of line
    FROM fencerow.jobs AS job
    WHERE job.holder = ANY(CAST(:dead AS uuid[]))
      AND job.state = 'running'
    ORDER BY waited DESC, job.id
    LIMIT CAST(:limit AS integer)
    FOR UPDATE OF job SKIP LOCKED
),
told AS MATERIALIZED (
    SELECT found.*,
           (SELECT CAST(count(DISTINCT note.attempt) AS integer)
            FROM fencerow.job_events AS note
            WHERE note.job_id = found.id AND note.attempt = found.attempt AND note.kind = 'alone') AS alone,
           (SELECT count(*) + 1
            FROM fencerow.job_events AS note
            WHERE note.job_id = found.id AND note.kind = 'reclaimed'
              AND note.detail ->> 'begun' IS DISTINCT FROM 'false'
              AND note.id + 0 > (SELECT COALESCE(max(ended.id + 0), 0)  -- + 0: notes are found by their job
                                 FROM fencerow.job_events AS ended
                                 WHERE ended.job_id = found.id
                                   AND ended.kind IN ('retried', 'snoozed', 'suspended', 'timed_out', 'revived'))) AS deaths
    FROM found
),
judged AS MATERIALIZED (
    SELECT told.*,
           CASE WHEN told.cancel_requested_at IS NOT NULL THEN 'cancelled'
                WHEN told.waited THEN 'queued'
                WHEN told.alone > 0 AND told.crashes + 1 >= told.crashes_max THEN 'failed'
                WHEN told.deaths >= told.crashes_max * CAST(:deaths_per_crash AS integer) THEN 'failed'
                ELSE 'queued' END AS became
    FROM told
),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = judged.became,
        crashes = job.crashes + judged.alone,
        suspect = NOT judged.waited,
        run_at = least(job.run_at, clock.now),
        error = CASE WHEN judged.became = 'failed'
                     THEN json_build_object('type', 'CrashBudgetSpent', 'code', 'crashes_exhausted', 'message',
                          CASE WHEN judged.alone > 0
                               THEN 'crash ' || (job.crashes + 1) || ' of ' || job.crashes_max || ': its worker died while it ran there alone'
                               ELSE judged.deaths || ' workers in a row died while they ran it' END)
                     ELSE job.error END,
        ended_at = CASE WHEN judged.became <> 'queued' THEN clock.now END,
        holder = CASE WHEN judged.became <> 'queued' THEN job.holder END,
        deadline_at = NULL
    FROM judged, clock
    WHERE job.id = judged.id
      AND job.state IS NOT DISTINCT FROM 'running'
      AND job.holder = ANY(CAST(:dead AS uuid[]))
      AND job.attempt = judged.attempt
    RETURNING job.id, job.state, job.attempt, job.queue, job.priority, job.run_at, job.crashes,
              judged.holder AS lost_holder, judged.claimed_at AS lost_claimed_at, judged.deaths, judged.waited,
              clock.now AS at
),
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.at, 'reclaimed', CAST(:actor AS text),
           json_build_object('holder', moved.lost_holder, 'claimed_at_us', fencerow.us(moved.lost_claimed_at),
                             'became', moved.state, 'crashes', moved.crashes, 'deaths', moved.deaths, 'begun', NOT moved.waited)
    FROM moved
)
SELECT id, state, queue, priority, fencerow.us(run_at), attempt, lost_holder FROM moved;

-- name: time_out
-- End attempts that their own holder calls overdue in its last renewal. It has measured that by the clock of its own
-- process: no clock of the database's decides here, so an outage or a jump makes nobody overdue.
-- What had begun is past its time limit, and its worker could not end it though it had a lease more for that: a hung
-- handler, a blocked event loop. It counts as a failure. What had not begun will never begin there: it keeps its place
-- and counts nothing. Finals are moved by archive in the same transaction.
-- Guard: the holder is alive, and the job is still running under it, in the attempt that it named.
WITH clock AS MATERIALIZED (SELECT fencerow.now() AS now),
overdue AS MATERIALIZED (
    SELECT worker.id AS holder,
           CAST(said.entry ->> 0 AS uuid) AS id,
           CAST(said.entry ->> 1 AS bigint) AS attempt,
           CAST(said.entry ->> 2 AS boolean) AS begun
    FROM fencerow.workers AS worker
    CROSS JOIN LATERAL json_array_elements(worker.stated -> 'overdue') AS said (entry)
    WHERE worker.state = 'alive'
),
moved AS (
    UPDATE fencerow.jobs AS job
    SET state = CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
                     WHEN overdue.begun AND job.failures + 1 >= job.attempts_max THEN 'failed'
                     WHEN overdue.begun AND (false{{whose turn is over}}) THEN 'waiting'
                     ELSE 'queued' END,
        {{where it waits}} = CASE WHEN job.cancel_requested_at IS NULL AND overdue.begun AND job.failures + 1 < job.attempts_max
                     AND (false{{whose turn is over}}) THEN {{where it waits first}} END,
        failures = job.failures + CAST(overdue.begun AS integer),
        run_at = CASE WHEN overdue.begun THEN clock.now + fencerow.seconds(CAST(:delay_s AS double precision))
                      ELSE least(job.run_at, clock.now) END,
        error = CASE WHEN overdue.begun
                     THEN json_build_object('type', 'AttemptTimeout', 'code', 'FR-403', 'message',
                                            'the attempt was past its time limit and its worker could not end it')
                     ELSE job.error END,
        ended_at = CASE WHEN job.cancel_requested_at IS NOT NULL
                          OR overdue.begun AND job.failures + 1 >= job.attempts_max THEN clock.now END,
        holder = CASE WHEN job.cancel_requested_at IS NOT NULL
                        OR overdue.begun AND job.failures + 1 >= job.attempts_max THEN job.holder END,
        deadline_at = NULL
    FROM overdue, clock
    WHERE job.id = ANY(ARRAY(
            SELECT locked.id
            FROM fencerow.jobs AS locked
            WHERE locked.id = ANY(ARRAY(SELECT overdue.id FROM overdue))
              AND locked.state IS NOT DISTINCT FROM 'running'
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
      AND job.id = overdue.id
      AND job.state IS NOT DISTINCT FROM 'running'
      AND job.holder = overdue.holder
      AND job.attempt = overdue.attempt
    RETURNING job.id, job.state, job.attempt, job.queue, job.priority, job.run_at, job.claimed_at, overdue.begun,
              overdue.holder AS late_holder, clock.now AS at,
              overdue.begun AND job.state <> 'cancelled' AS has_failed{{job.columns of the moved}}
){{when attempts have failed}}{{when jobs wait again}},
noted AS (
    INSERT INTO fencerow.job_events (job_id, attempt, at, kind, actor, detail)
    SELECT moved.id, moved.attempt, moved.at, CASE WHEN moved.begun THEN 'timed_out' ELSE 'released' END,
           CAST(:actor AS text),
           json_build_object('claimed_at_us', fencerow.us(moved.claimed_at), 'became', moved.state,
                             'reason', CASE WHEN moved.begun THEN 'its worker could not end it in time'
                                            ELSE 'its worker did not begin it in time' END)
    FROM moved
)
SELECT id, state, queue, priority, fencerow.us(run_at), attempt, late_holder, begun FROM moved;
