-- What an end writes into the flow of its job.

-- at: when jobs have ended
-- The end lies with the job's flow, and is to be told to those that wait for it: it is its own arrival, so none is lost.
-- Jobs of flows are found by their ids: a plain `state IS NULL` would let a plan that was made when there were few walk all
-- that have not ended, once for each job that ends. One look for all that end comes before: most are of no flow, and to look
-- for each as a row of a join costs three times as much.
ended_in_flows AS (
    UPDATE fencerow.flow_jobs AS member
    SET state = ended.state, attempt = ended.attempt, ended_at = ended.ended_at, error = ended.error,
        result = CASE WHEN member.is_read THEN ended.result END
    FROM ended
    WHERE member.job_id = ended.id
      AND COALESCE(member.state, '') = ''
      AND (SELECT EXISTS (SELECT 1 FROM fencerow.flow_jobs AS known WHERE known.job_id = ANY(ARRAY(SELECT ended.id FROM ended))))
    RETURNING member.job_id
)

-- at: whose end is awaited
-- Jobs of its flow wait for it: its end is announced, so that a worker wakes them at once.
ended.id IN (SELECT ended_in_flows.job_id FROM ended_in_flows)

-- at: when jobs are revived
-- In its flow the job has not ended.
again_in_flows AS (
    UPDATE fencerow.flow_jobs AS member
    SET state = NULL, told = false, attempt = NULL, ended_at = NULL, error = NULL, result = NULL
    FROM revived
    WHERE member.job_id = revived.id
)
