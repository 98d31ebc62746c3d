-- What an end writes into the line in which its job stands.

-- fragment: not ended
-- How a handover stands whose job has not ended. Its token stays: no take of before may confirm what comes.
state = NULL, attempt = NULL, result = NULL, error = NULL, ended_at = NULL, held_until = NULL,
    holder = NULL, free_at = NULL, confirmed_at = NULL, confirmed_by = NULL

-- at: when jobs have ended
-- The end goes into the line, if its job stands in one. Its first end is the one that counts. One look for all that end comes
-- before, as in flows: most stand in none.
handed AS (
    UPDATE fencerow.handovers AS handover
    SET state = ended.state, attempt = ended.attempt, result = ended.result, error = ended.error, ended_at = ended.ended_at,
        held_until = ended.ended_at + fencerow.seconds(handover.hold_s)
    FROM ended
    WHERE handover.job_id = ended.id
      AND handover.state IS NULL
      AND (SELECT EXISTS (SELECT 1 FROM fencerow.handovers AS known WHERE known.job_id = ANY(ARRAY(SELECT ended.id FROM ended))))
    RETURNING handover.job_id
)

-- at: whose end is awaited
-- A receiver waits for it as a caller may: its end is announced.
ended.id IN (SELECT handed.job_id FROM handed)

-- at: when jobs are revived
-- In its line the job has not ended, whoever had its end.
reopened AS (
    UPDATE fencerow.handovers AS handover
    SET {{not ended}}
    FROM revived
    WHERE handover.job_id = revived.id
)
