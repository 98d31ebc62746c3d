-- Looks at handovers. None locks or changes anything.

-- fragment: first of its line
-- The job of the first that is not confirmed, if that is another one.
(SELECT CASE WHEN first.place <> handover.place THEN first.job_id END
 FROM fencerow.handovers AS first
 WHERE first.receiver = handover.receiver AND first.key = handover.key AND first.confirmed_at IS NULL
 ORDER BY first.place
 LIMIT 1)

-- name: list_handovers
-- What is not confirmed, behind a place in the order of the submits, and behind whom it stands.
SELECT {{columns of a handover}}, {{first of its line}}, fencerow.now()
FROM fencerow.handovers AS handover
WHERE handover.confirmed_at IS NULL
  AND (:receiver IS NULL OR handover.receiver = :receiver)
  AND (:key IS NULL OR handover.key = :key)
  AND handover.place > :after
ORDER BY handover.place
LIMIT :limit;

-- name: place_of_handover
-- The handover of a job, confirmed or not, and behind whom it stands.
SELECT {{columns of a handover}}, {{first of its line}}, fencerow.now()
FROM fencerow.handovers AS handover
WHERE handover.job_id = :id;

-- name: count_handovers
-- How many are not confirmed, and of how many of these the job has ended.
SELECT count(*), count(few.state)
FROM (SELECT handover.state
      FROM fencerow.handovers AS handover
      WHERE handover.confirmed_at IS NULL
      LIMIT :limit) AS few;

-- name: unconfirmed_handovers
-- The lines in which an end has waited for long, and of each the end that has waited longest.
WITH late AS MATERIALIZED (
    SELECT handover.receiver, handover.key, handover.job_id, handover.ended_at, handover.token, handover.place
    FROM fencerow.handovers AS handover
    WHERE {{is to be confirmed}}
      AND handover.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
    LIMIT :look
),
lines AS (
    SELECT late.receiver, late.key, min(late.place) AS place, count(*) AS ends FROM late GROUP BY late.receiver, late.key
)
SELECT late.receiver, late.key, late.job_id, late.ended_at, late.token, lines.ends, fencerow.now()
FROM lines JOIN late ON late.place = lines.place
ORDER BY late.ended_at
LIMIT :limit;
