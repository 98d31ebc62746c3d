-- Receipts: who wished for one, and how the job ended.

-- at: when jobs have ended
-- An end signs the receipt of its job. Where nobody wished for one, this is one look at an empty table.
signed AS (
    UPDATE fencerow.receipts AS receipt
    SET state = ended.state, signed_at = ended.ended_at
    FROM ended
    WHERE receipt.job_id = ended.id
    RETURNING receipt.job_id
)

-- at: whose end is awaited
-- Whoever wished for a receipt waits for the end.
ended.id IN (SELECT signed.job_id FROM signed)

-- at: when jobs are revived
-- A job that runs again has not ended.
unsigned AS (
    UPDATE fencerow.receipts AS receipt
    SET state = NULL, signed_at = NULL
    FROM revived
    WHERE receipt.job_id = revived.id
)

-- name: wish_for_receipts
-- What new jobs wish for; of one that was stored before, what is said now. Guard: the job's id.
INSERT INTO fencerow.receipts (job_id, wish)
SELECT wished.id, wished.wish
FROM json_to_recordset(CAST(:wishes AS json)) AS wished (id uuid, wish text)
ON CONFLICT (job_id) DO UPDATE SET wish = excluded.wish;

-- name: count_receipts
-- How many are signed.
SELECT count(*) FROM fencerow.receipts AS receipt WHERE receipt.state IS NOT NULL;

-- name: purge_receipts
-- Forget those that are signed. Guard: signed.
DELETE FROM fencerow.receipts AS receipt
WHERE receipt.job_id = ANY(ARRAY(
        SELECT signed.job_id FROM fencerow.receipts AS signed WHERE signed.state IS NOT NULL LIMIT CAST(:limit AS integer)
    ))
RETURNING receipt.job_id;
