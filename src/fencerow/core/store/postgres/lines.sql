-- The lines of handovers: who stands in one, from the submit of a job until its end is confirmed.

-- fragment: places of the lined
-- In the order of the submits: the sequence gives rising numbers, and takes no lock that a user's transaction would hold.
INSERT INTO fencerow.handovers (job_id, receiver, key, hold_s, name, lined_at)
SELECT lined.id, lined.receiver, lined.key, lined.hold_s, lined.name, (SELECT fencerow.now())
FROM ROWS FROM (json_to_recordset(CAST(:lined AS json)) AS (
    id uuid, receiver text, key text, hold_s double precision, name text
)) WITH ORDINALITY AS lined (id, receiver, key, hold_s, name, place)
ORDER BY lined.place

-- name: line_up
-- Let new jobs take their places. Guard: the job's id, which stands in no line.
{{places of the lined}};

-- name: line_up_again
-- The same for jobs that may stand in a line: these keep their places, and have not ended.
{{places of the lined}}
ON CONFLICT (job_id) DO UPDATE
SET receiver = EXCLUDED.receiver, key = EXCLUDED.key, hold_s = EXCLUDED.hold_s, name = EXCLUDED.name,
    {{not ended}};
