-- What an end writes into the flow of its job.

-- at: when jobs have ended
-- The end lies with the job's flow, and is to be told to those that wait for it: it is its own arrival, so none is lost.
-- Where no end is still to come, this ends at once.
UPDATE fencerow.flow_jobs AS member
SET state = ended.state, attempt = ended.attempt, ended_at = ended.ended_at, error = ended.error,
    result = CASE WHEN member.is_read = 1 THEN ended.result END
FROM fencerow.ended AS ended
WHERE member.job_id = ended.id
  AND member.state IS NULL
  AND EXISTS (SELECT 1 FROM fencerow.flow_jobs AS any_member WHERE any_member.state IS NULL);

-- at: whose end is awaited
-- Jobs of its flow wait for it: its end is announced, so that a worker wakes them at once.
EXISTS (SELECT 1 FROM fencerow.flow_jobs AS member WHERE member.job_id = ended.id AND member.state IS NOT NULL AND member.told = 0)

-- at: when jobs are revived
-- In its flow the job has not ended.
UPDATE fencerow.flow_jobs
SET state = NULL, told = 0, attempt = NULL, ended_at = NULL, error = NULL, result = NULL
WHERE job_id IN (SELECT revived.id FROM fencerow.revived AS revived);
