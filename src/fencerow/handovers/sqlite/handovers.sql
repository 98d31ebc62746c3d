-- Handovers: an end is taken by one receiver's process at a time, under a lease and a token, until it is confirmed. Who comes
-- next in a line is stored nowhere: it is the first of its key that nobody has confirmed.

-- fragment: is to be confirmed
-- Its job has ended, and nobody has confirmed that the receiver has its end.
handover.state IS NOT NULL
  AND handover.confirmed_at IS NULL

-- fragment: is free
-- Nobody has it, or the lease of who took it is over, or this very take made it its own before and lost the answer. A lease
-- that reaches further than it is long was written before the clock went back.
(handover.free_at IS NULL
 OR handover.holder = :holder
 OR handover.free_at NOT BETWEEN fencerow.now() AND fencerow.now() + CAST(handover.lease_s * 1000000 AS INTEGER))

-- fragment: columns of a handover
job_id, receiver, key, name, state, attempt, result, error, token, holder, taken_by, hold_s, place, lined_at, ended_at,
held_until, taken_at, free_at, confirmed_at, confirmed_by

-- fragment: first of a line
-- The first of this key that nobody has confirmed, if its job has ended and nobody has taken it.
(SELECT CASE WHEN handover.state IS NOT NULL AND {{is free}} THEN handover.place END
 FROM fencerow.handovers AS handover
 WHERE handover.receiver = :receiver AND handover.key = line.key AND handover.confirmed_at IS NULL
 ORDER BY handover.place
 LIMIT 1)

-- name: take_handovers
-- Take :limit ends that nobody has: of each line the first that is not confirmed, if its job has ended, and all that have
-- waited for those before them as long as they may. The lines are found by their keys, so what waits in one costs nothing;
-- those behind :after come first, and the walk ends :beside firsts beyond the limit, so that it costs no more when there
-- are many lines. Of what was found the oldest are taken. Guard: ended, not confirmed, and free.
WITH RECURSIVE behind (key) AS (
    SELECT min(handover.key)
    FROM fencerow.handovers AS handover
    WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.key > :after
    UNION ALL
    SELECT (SELECT min(handover.key)
            FROM fencerow.handovers AS handover
            WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.key > line.key)
    FROM behind AS line
    WHERE line.key IS NOT NULL
),
before (key) AS (
    SELECT min(handover.key)
    FROM fencerow.handovers AS handover
    WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.key <= :after
    UNION ALL
    SELECT (SELECT min(handover.key)
            FROM fencerow.handovers AS handover
            WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.key > line.key
              AND handover.key <= :after)
    FROM before AS line
    WHERE line.key IS NOT NULL
),
ready (place) AS MATERIALIZED (
    SELECT found.place
    FROM (SELECT walked.place
          FROM (SELECT {{first of a line}} AS place FROM behind AS line
                UNION ALL
                SELECT {{first of a line}} FROM before AS line) AS walked
          WHERE walked.place IS NOT NULL
          LIMIT :limit + :beside) AS found
    UNION ALL
    SELECT late.place
    FROM (SELECT handover.place
          FROM fencerow.handovers AS handover
          WHERE handover.receiver = :receiver
            AND {{is to be confirmed}}
            AND handover.held_until <= fencerow.now()
            AND {{is free}}
          ORDER BY handover.held_until, handover.place
          LIMIT 10 * :limit) AS late
)
UPDATE fencerow.handovers
SET token = token + CASE WHEN holder IS :holder THEN 0 ELSE 1 END,
    holder = :holder,
    taken_by = :taken_by,
    taken_at = fencerow.now(),
    lease_s = :lease_s,
    free_at = fencerow.now() + CAST(:lease_s * 1000000 AS INTEGER)
WHERE place IN (SELECT handover.place
                FROM fencerow.handovers AS handover
                WHERE handover.place IN (SELECT ready.place FROM ready)
                  AND {{is to be confirmed}}
                  AND {{is free}}
                ORDER BY handover.place
                LIMIT :limit)
RETURNING {{columns of a handover}};

-- name: next_handover
-- In how many microseconds the next lease of this receiver is over, or the next end need not wait any longer for those
-- before it.
SELECT min(next.at) - fencerow.now()
FROM (SELECT min(handover.free_at) AS at
      FROM fencerow.handovers AS handover
      WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.free_at > fencerow.now()
      UNION ALL
      SELECT min(handover.held_until)
      FROM fencerow.handovers AS handover
      WHERE handover.receiver = :receiver AND {{is to be confirmed}} AND handover.held_until > fencerow.now()) AS next;

-- name: confirm_handover
-- The receiver has the end: the next of the line may be taken. The row stays for as long as its job does, without the result.
-- Guard: ended, not confirmed, to this receiver; and under the token of this take, if one is named.
UPDATE fencerow.handovers AS handover
SET confirmed_at = fencerow.now(),
    confirmed_by = :actor,
    result = NULL,
    error = NULL,
    free_at = NULL
WHERE handover.job_id = :id
  AND handover.receiver = :receiver
  AND {{is to be confirmed}}
  AND (:holder IS NULL OR (handover.holder = :holder AND handover.token = :token))
RETURNING job_id;

-- name: release_handover
-- Give a taken end up unconfirmed: anybody may take it again, after a while. Guard: this take has it still.
UPDATE fencerow.handovers AS handover
SET holder = NULL,
    lease_s = :delay_s,
    free_at = fencerow.now() + CAST(:delay_s * 1000000 AS INTEGER)
WHERE handover.job_id = :id
  AND {{is to be confirmed}}
  AND handover.holder = :holder
  AND handover.token = :token
RETURNING job_id;

-- name: read_handover
-- One handover as it stands, and the time.
SELECT {{columns of a handover}}, fencerow.now()
FROM fencerow.handovers AS handover
WHERE handover.job_id = :id;

-- name: handovers_after
-- How far some rows reach, in the order of their places: what is looked at in one go.
SELECT count(*) AS handovers, max(few.place) AS last
FROM (SELECT handover.place
      FROM fencerow.handovers AS handover
      WHERE handover.place > :after
      ORDER BY handover.place
      LIMIT :limit) AS few;

-- name: purge_handovers
-- Forget what was confirmed long ago and whose job is gone. Guard: both.
DELETE FROM fencerow.handovers AS handover
WHERE handover.place > :after
  AND handover.place <= :last
  AND handover.confirmed_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = handover.job_id)
  AND NOT EXISTS (SELECT 1 FROM fencerow.finished_jobs AS job WHERE job.id = handover.job_id)
RETURNING place;

-- name: lock_missed
-- Find those whose job is not live, though its end was never written: somebody moved or removed it by hand.
SELECT handover.place
FROM fencerow.handovers AS handover
WHERE handover.place > :after
  AND handover.place <= :last
  AND handover.state IS NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = handover.job_id);

-- name: write_missed
-- Write the ends that were missed. Of a job that is nowhere nobody knows how it ended: that is what the receiver is told.
-- Guard: not ended, and not live.
UPDATE fencerow.handovers AS handover
SET state = COALESCE(known.state, 'failed'),
    attempt = known.attempt,
    result = known.result,
    error = CASE WHEN known.state IS NULL
                 THEN json_object('type', 'JobGone', 'code', 'job_gone', 'message', 'the job was removed before its end was handed over')
                 ELSE known.error END,
    ended_at = COALESCE(known.ended_at, fencerow.now()),
    held_until = fencerow.now() + CAST(handover.hold_s * 1000000 AS INTEGER)
FROM json_each(:places) AS missed
JOIN fencerow.handovers AS open ON open.place = missed.value
LEFT JOIN fencerow.finished_jobs AS known ON known.id = open.job_id
WHERE handover.place = missed.value
  AND handover.state IS NULL
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.id = handover.job_id)
RETURNING job_id;

-- name: shorten_holds
-- Holds that reach further than they are long were written before the clock went back: they begin now.
-- Guard: to be confirmed, and further ahead still.
UPDATE fencerow.handovers AS handover
SET held_until = fencerow.now() + CAST(handover.hold_s * 1000000 AS INTEGER)
WHERE handover.place > :after
  AND handover.place <= :last
  AND {{is to be confirmed}}
  AND handover.held_until > fencerow.now() + CAST(handover.hold_s * 1000000 AS INTEGER)
RETURNING place;
