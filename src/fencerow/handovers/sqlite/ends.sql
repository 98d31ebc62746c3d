-- What an end writes into the line in which its job stands.

-- fragment: not ended
-- How a handover stands whose job has not ended. Its token stays: no take of before may confirm what comes.
state = NULL, attempt = NULL, result = NULL, error = NULL, ended_at = NULL, held_until = NULL,
    holder = NULL, free_at = NULL, confirmed_at = NULL, confirmed_by = NULL

-- at: when jobs have ended
-- The end goes into the line, if its job stands in one. Its first end is the one that counts. Where no end is still to
-- come, this ends at once.
UPDATE fencerow.handovers AS handover
SET state = ended.state, attempt = ended.attempt, result = ended.result, error = ended.error, ended_at = ended.ended_at,
    held_until = ended.ended_at + CAST(handover.hold_s * 1000000 AS INTEGER)
FROM fencerow.ended AS ended
WHERE handover.job_id = ended.id
  AND handover.state IS NULL
  AND EXISTS (SELECT 1 FROM fencerow.handovers AS any_handover WHERE any_handover.state IS NULL);

-- at: whose end is awaited
-- A receiver waits for it as a caller may: its end is announced.
EXISTS (SELECT 1
        FROM fencerow.handovers AS handover
        WHERE handover.job_id = ended.id AND handover.state IS NOT NULL AND handover.confirmed_at IS NULL)

-- at: when jobs are revived
-- In its line the job has not ended, whoever had its end.
UPDATE fencerow.handovers
SET {{not ended}}
WHERE job_id IN (SELECT revived.id FROM fencerow.revived AS revived);
