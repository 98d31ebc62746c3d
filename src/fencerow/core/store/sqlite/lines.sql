-- The lines of handovers: who stands in one, from the submit of a job until its end is confirmed.

-- fragment: places of the lined
-- In the order of the submits.
INSERT INTO fencerow.handovers (job_id, receiver, key, hold_s, name, lined_at)
SELECT json_extract(lined.value, '$.id'), json_extract(lined.value, '$.receiver'), json_extract(lined.value, '$.key'),
       json_extract(lined.value, '$.hold_s'), json_extract(lined.value, '$.name'), fencerow.now()
FROM json_each(:lined) AS lined
WHERE true
ORDER BY lined.key

-- name: line_up
-- Let new jobs take their places. Guard: the job's id, which stands in no line.
{{places of the lined}};

-- name: line_up_again
-- The same for jobs that may stand in a line: these keep their places, and have not ended.
{{places of the lined}}
ON CONFLICT (job_id) DO UPDATE
SET receiver = excluded.receiver, key = excluded.key, hold_s = excluded.hold_s, name = excluded.name,
    {{not ended}};
