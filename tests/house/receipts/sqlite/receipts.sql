-- Receipts: who wished for one, and how the job ended.

-- at: when jobs have ended
-- An end signs the receipt of its job.
UPDATE fencerow.receipts AS receipt
SET state = ended.state, signed_at = ended.ended_at
FROM fencerow.ended AS ended
WHERE receipt.job_id = ended.id;

-- at: whose end is awaited
-- Whoever wished for a receipt waits for the end.
EXISTS (SELECT 1 FROM fencerow.receipts AS receipt WHERE receipt.job_id = ended.id)

-- at: when jobs are revived
-- A job that runs again has not ended.
UPDATE fencerow.receipts
SET state = NULL, signed_at = NULL
WHERE job_id IN (SELECT revived.id FROM fencerow.revived AS revived);

-- name: wish_for_receipts
-- What new jobs wish for; of one that was stored before, what is said now. Guard: the job's id.
INSERT INTO fencerow.receipts (job_id, wish)
SELECT wished.value ->> 'id', wished.value ->> 'wish'
FROM json_each(:wishes) AS wished
WHERE true
ON CONFLICT (job_id) DO UPDATE SET wish = excluded.wish;

-- name: count_receipts
-- How many are signed.
SELECT count(*) FROM fencerow.receipts AS receipt WHERE receipt.state IS NOT NULL;

-- name: purge_receipts
-- Forget those that are signed. Guard: signed.
DELETE FROM fencerow.receipts
WHERE job_id IN (SELECT signed.job_id FROM fencerow.receipts AS signed WHERE signed.state IS NOT NULL LIMIT :limit)
RETURNING job_id;
