-- Looks at handovers. None locks or changes anything.

-- fragment: first of its line
-- The job of the first that is not confirmed, if that is another one.
(SELECT CASE WHEN first.place <> handover.place THEN CAST(first.job_id AS text) END
 FROM fencerow.handovers AS first
 WHERE first.receiver = handover.receiver AND first.key = handover.key AND first.confirmed_at IS NULL
 ORDER BY first.place
 LIMIT 1)

-- name: list_handovers
-- What is not confirmed, behind a place in the order of the submits, and behind whom it stands.
SELECT {{columns of a handover}}, {{first of its line}}, fencerow.us(fencerow.now())
FROM fencerow.handovers AS handover
WHERE handover.confirmed_at IS NULL
  AND (CAST(:receiver AS text) IS NULL OR handover.receiver = CAST(:receiver AS text))
  AND (CAST(:key AS text) IS NULL OR handover.key = CAST(:key AS text))
  AND handover.place > CAST(:after AS bigint)
ORDER BY handover.place
LIMIT CAST(:limit AS integer);

-- name: place_of_handover
-- The handover of a job, confirmed or not, and behind whom it stands.
SELECT {{columns of a handover}}, {{first of its line}}, fencerow.us(fencerow.now())
FROM fencerow.handovers AS handover
WHERE handover.job_id = CAST(:id AS uuid);

-- name: count_handovers
-- How many are not confirmed, and of how many of these the job has ended.
SELECT count(*), count(few.state)
FROM (SELECT handover.state
      FROM fencerow.handovers AS handover
      WHERE handover.confirmed_at IS NULL
      LIMIT CAST(:limit AS integer)) AS few;

-- name: unconfirmed_handovers
-- The lines in which an end has waited for long, and of each the end that has waited longest.
WITH late AS MATERIALIZED (
    SELECT handover.receiver, handover.key, handover.job_id, handover.ended_at, handover.token, handover.place
    FROM fencerow.handovers AS handover
    WHERE {{is to be confirmed}}
      AND handover.ended_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
    LIMIT CAST(:look AS integer)
),
oldest AS (
    SELECT DISTINCT ON (late.receiver, late.key) late.*, count(*) OVER (PARTITION BY late.receiver, late.key) AS ends
    FROM late
    ORDER BY late.receiver, late.key, late.place
)
SELECT oldest.receiver, oldest.key, CAST(oldest.job_id AS text), fencerow.us(oldest.ended_at), oldest.token, oldest.ends,
       fencerow.us(fencerow.now())
FROM oldest
ORDER BY oldest.ended_at
LIMIT CAST(:limit AS integer);
