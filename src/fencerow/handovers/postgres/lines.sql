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
-- The same for jobs that may stand in a line; returns those that did not. Guard: the job's id.
{{places of the lined}}
ON CONFLICT (job_id) DO NOTHING
RETURNING job_id;

-- name: stay_in_line
-- Jobs that stand in a line and were replaced keep their places, and take what is said now.
-- Guard: not ended. What an end wrote is not touched here, so whoever submits unique jobs needs no right to write it.
UPDATE fencerow.handovers AS handover
SET receiver = lined.receiver, key = lined.key, hold_s = lined.hold_s, name = lined.name
FROM json_to_recordset(CAST(:lined AS json)) AS lined (
    id uuid, receiver text, key text, hold_s double precision, name text
)
WHERE handover.job_id = lined.id
  AND handover.state IS NULL
RETURNING handover.job_id;

-- name: begin_again_in_line
-- Ids whose jobs ended and are gone keep their places as well, and have not ended. Guard: ended, and a job under this id
-- was inserted by now.
UPDATE fencerow.handovers AS handover
SET receiver = lined.receiver, key = lined.key, hold_s = lined.hold_s, name = lined.name,
    {{not ended}}
FROM json_to_recordset(CAST(:lined AS json)) AS lined (
    id uuid, receiver text, key text, hold_s double precision, name text
)
WHERE handover.job_id = lined.id
  AND handover.state IS NOT NULL
RETURNING handover.job_id;
