-- Handovers: an end is taken by one receiver's process at a time, under a lease and a token, until it is confirmed. Who comes
-- next in a line is stored nowhere: it is the first of its key that nobody has confirmed.

-- fragment: is to be confirmed
-- Its job has ended, and nobody has confirmed that the receiver has its end.
handover.state IS NOT NULL
  AND handover.confirmed_at IS NULL

-- fragment: is to be confirmed still
-- The same of rows that are named: num_nulls() is no condition of an index, so that the planner looks at these rows, and does not
-- walk all that are to be confirmed, as it would when it believes that few are.
handover.state IS NOT NULL
  AND num_nulls(handover.confirmed_at) = 1

-- fragment: is free
-- Nobody has it, or the lease of who took it is over, or this very take made it its own before and lost the answer. A lease
-- that reaches further than it is long was written before the clock went back.
(handover.free_at IS NULL
 OR handover.holder = CAST(:holder AS uuid)
 OR handover.free_at NOT BETWEEN (SELECT fencerow.now())
                             AND (SELECT fencerow.now()) + fencerow.seconds(handover.lease_s))

-- fragment: is held too long
-- It was written before the clock went back.
handover.held_until > (SELECT fencerow.now()) + fencerow.seconds(handover.hold_s)

-- fragment: columns of a handover
CAST(handover.job_id AS text), handover.receiver, handover.key, handover.name, handover.state, handover.attempt,
CAST(handover.result AS text), CAST(handover.error AS text), handover.token, CAST(handover.holder AS text),
handover.taken_by, handover.hold_s, handover.place, fencerow.us(handover.lined_at), fencerow.us(handover.ended_at),
fencerow.us(handover.held_until), fencerow.us(handover.taken_at), fencerow.us(handover.free_at),
fencerow.us(handover.confirmed_at), handover.confirmed_by

-- fragment: first of a line
-- The first of this key that nobody has confirmed, if its job has ended and nobody has taken it. There is one, so it is the first
-- from this key on: asked so, no index but that of the lines has them in this order, and none is walked to this place.
(SELECT CASE WHEN handover.state IS NOT NULL AND {{is free}} THEN handover.place END
 FROM fencerow.handovers AS handover
 WHERE handover.receiver = :receiver AND handover.key >= line.key AND handover.confirmed_at IS NULL
 ORDER BY handover.key, handover.place
 LIMIT 1)

-- name: take_handovers
-- Take :limit ends that nobody has: of each line the first that is not confirmed, if its job has ended, and all that have
-- waited for those before them as long as they may. The lines are found by their keys, so what waits in one costs nothing;
-- those behind :after come first, and the walk ends :beside firsts beyond the limit, so that it costs no more when there
-- are many lines. Of what was found the oldest are taken.
-- Guard: ended, not confirmed, and free; what another takes just now is passed over. Those before the first of a line are
-- confirmed, and stay so: an older snapshot sees less that may be taken, and never more.
WITH RECURSIVE behind (key) AS (
    (SELECT handover.key
     FROM fencerow.handovers AS handover
     WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.key > CAST(:after AS text)
     ORDER BY handover.key
     LIMIT 1)
    UNION ALL
    SELECT (SELECT handover.key
            FROM fencerow.handovers AS handover
            WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.key > line.key
            ORDER BY handover.key
            LIMIT 1)
    FROM behind AS line
    WHERE line.key IS NOT NULL
),
before (key) AS (
    (SELECT handover.key
     FROM fencerow.handovers AS handover
     WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.key <= CAST(:after AS text)
     ORDER BY handover.key
     LIMIT 1)
    UNION ALL
    SELECT (SELECT handover.key
            FROM fencerow.handovers AS handover
            WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.key > line.key
              AND handover.key <= CAST(:after AS text)
            ORDER BY handover.key
            LIMIT 1)
    FROM before AS line
    WHERE line.key IS NOT NULL
),
first AS MATERIALIZED (
    SELECT found.place
    FROM (SELECT {{first of a line}} AS place FROM behind AS line
          UNION ALL
          SELECT {{first of a line}} FROM before AS line) AS found
    WHERE found.place IS NOT NULL
    LIMIT CAST(:limit AS integer) + CAST(:beside AS integer)
),
late AS MATERIALIZED (
    SELECT handover.place
    FROM fencerow.handovers AS handover
    WHERE handover.receiver = :receiver
      AND {{is to be confirmed}}
      AND handover.held_until <= (SELECT fencerow.now())
      AND {{is free}}
    ORDER BY handover.held_until, handover.place
    LIMIT 10 * CAST(:limit AS integer)
),
taken AS (
    UPDATE fencerow.handovers AS handover
    SET token = handover.token + CASE WHEN handover.holder = CAST(:holder AS uuid) THEN 0 ELSE 1 END,
        holder = CAST(:holder AS uuid),
        taken_by = CAST(:taken_by AS text),
        taken_at = fencerow.now(),
        lease_s = CAST(:lease_s AS double precision),
        free_at = fencerow.now() + fencerow.seconds(CAST(:lease_s AS double precision))
    WHERE handover.place = ANY(ARRAY(
            SELECT handover.place
            FROM fencerow.handovers AS handover
            WHERE handover.place = ANY(ARRAY(SELECT first.place FROM first UNION ALL SELECT late.place FROM late))
              AND {{is to be confirmed still}}
              AND {{is free}}
            ORDER BY handover.place
            LIMIT CAST(:limit AS integer)
            FOR UPDATE SKIP LOCKED
        ))
      AND {{is to be confirmed still}}
      AND {{is free}}
    RETURNING handover.*
)
SELECT {{columns of a handover}} FROM taken AS handover ORDER BY handover.place;

-- name: next_handover
-- In how many microseconds the next lease of this receiver is over, or the next end need not wait any longer for those
-- before it.
SELECT fencerow.us(least(
           (SELECT min(handover.free_at)
            FROM fencerow.handovers AS handover
            WHERE handover.receiver = :receiver
              AND {{is to be confirmed}}
              AND handover.free_at > (SELECT fencerow.now())),
           (SELECT min(handover.held_until)
            FROM fencerow.handovers AS handover
            WHERE handover.receiver = :receiver
              AND {{is to be confirmed}}
              AND handover.held_until > (SELECT fencerow.now())))) - fencerow.us(fencerow.now());

-- name: confirm_handover
-- The receiver has the end: the next of the line may be taken. The row stays for as long as its job does, without the result.
-- Guard: ended, not confirmed, to this receiver; and under the token of this take, if one is named.
UPDATE fencerow.handovers AS handover
SET confirmed_at = fencerow.now(),
    confirmed_by = CAST(:actor AS text),
    result = NULL,
    error = NULL,
    free_at = NULL
WHERE handover.job_id = CAST(:id AS uuid)
  AND handover.receiver = :receiver
  AND {{is to be confirmed still}}
  AND (CAST(:holder AS uuid) IS NULL
       OR (handover.holder = CAST(:holder AS uuid) AND handover.token = CAST(:token AS bigint)))
RETURNING handover.job_id;

-- name: release_handover
-- Give a taken end up unconfirmed: anybody may take it again, after a while. Guard: this take has it still.
UPDATE fencerow.handovers AS handover
SET holder = NULL,
    lease_s = CAST(:delay_s AS double precision),
    free_at = fencerow.now() + fencerow.seconds(CAST(:delay_s AS double precision))
WHERE handover.job_id = CAST(:id AS uuid)
  AND {{is to be confirmed still}}
  AND handover.holder = CAST(:holder AS uuid)
  AND handover.token = CAST(:token AS bigint)
RETURNING handover.job_id;

-- name: read_handover
-- One handover as it stands, and the time.
SELECT {{columns of a handover}}, fencerow.us(fencerow.now())
FROM fencerow.handovers AS handover
WHERE handover.job_id = CAST(:id AS uuid);

-- name: handovers_after
-- How far some rows reach, in the order of their places: what is looked at in one go.
SELECT count(*) AS handovers, max(few.place) AS last
FROM (SELECT handover.place
      FROM fencerow.handovers AS handover
      WHERE handover.place > CAST(:after AS bigint)
      ORDER BY handover.place
      LIMIT CAST(:limit AS integer)) AS few;

-- name: purge_handovers
-- Forget what was confirmed long ago and whose job is gone. Guard: both, and nobody locks the row.
DELETE FROM fencerow.handovers AS handover
WHERE handover.place = ANY(ARRAY(
        SELECT handover.place
        FROM fencerow.handovers AS handover
        WHERE handover.place > CAST(:after AS bigint)
          AND handover.place <= CAST(:last AS bigint)
          AND handover.confirmed_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
          AND NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = handover.job_id OFFSET 0)
        FOR UPDATE SKIP LOCKED
    ))
  AND handover.confirmed_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
RETURNING handover.place;

-- name: lock_missed
-- Lock those whose job is not live, though its end was never written: somebody moved or removed it by hand.
SELECT handover.place
FROM fencerow.handovers AS handover
WHERE handover.place > CAST(:after AS bigint)
  AND handover.place <= CAST(:last AS bigint)
  AND handover.state IS NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = handover.job_id OFFSET 0)
FOR UPDATE SKIP LOCKED;

-- name: write_missed
-- Write the ends that were missed. Of a job that is nowhere nobody knows how it ended: that is what the receiver is told.
-- A statement of its own, after the locks: a revive that was committed before them is seen here, and one that comes later
-- waits for them. Guard: not ended, and not live.
UPDATE fencerow.handovers AS handover
SET state = COALESCE(known.state, 'failed'),
    attempt = known.attempt,
    result = known.result,
    error = CASE WHEN known.state IS NULL
                 THEN json_build_object('type', 'JobGone', 'code', 'job_gone', 'message', 'the job was removed before its end was handed over')
                 ELSE known.error END,
    ended_at = COALESCE(known.ended_at, clock.now),
    held_until = clock.now + fencerow.seconds(handover.hold_s)
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN fencerow.handovers AS open
LEFT JOIN LATERAL (SELECT * FROM fencerow.finished_jobs AS job WHERE job.id = open.job_id OFFSET 0) AS known ON true
WHERE handover.place = ANY(CAST(:places AS bigint[]))
  AND open.place = ANY(CAST(:places AS bigint[]))
  AND handover.place = open.place
  AND handover.state IS NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = handover.job_id OFFSET 0)
RETURNING CAST(handover.job_id AS text);

-- name: shorten_holds
-- Holds that reach further than they are long were written before the clock went back: they begin now.
-- Guard: to be confirmed, and further ahead still; locked rows are left for the next look.
UPDATE fencerow.handovers AS handover
SET held_until = fencerow.now() + fencerow.seconds(handover.hold_s)
WHERE handover.place = ANY(ARRAY(
        SELECT handover.place
        FROM fencerow.handovers AS handover
        WHERE handover.place > CAST(:after AS bigint)
          AND handover.place <= CAST(:last AS bigint)
          AND {{is to be confirmed still}}
          AND {{is held too long}}
        FOR UPDATE SKIP LOCKED
    ))
  AND {{is to be confirmed still}}
  AND {{is held too long}}
RETURNING handover.place;
