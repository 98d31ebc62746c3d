-- The lines of handovers: who stands in one, from the submit of a job until its end is confirmed.

-- fragment: places of the lined
-- In the order of the submits.
INSERT INTO fencerow.handovers (job_id, receiver, key, hold_s, name, lined_at)
SELECT json_extract(lined.value, '$.id'), json_extract(lined.value, '$.receiver'), json_extract(lined.value, '$.key'),
       json_extract(lined.value, '$.hold_s'), json_extract(lined.value, '$.name'), fencerow.now()
FROM json_each(:lined) AS lined
WHERE true
ORDER BY lined.key

-- fragment: given for the line
(
    SELECT given.value ->> 'id' AS id, given.value ->> 'receiver' AS receiver, given.value ->> 'key' AS key,
           given.value ->> 'hold_s' AS hold_s, given.value ->> 'name' AS name
    FROM json_each(:lined) AS given
) AS lined

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
FROM {{given for the line}}
WHERE handover.job_id = lined.id
  AND handover.state IS NULL
RETURNING job_id;

-- name: begin_again_in_line
-- Ids whose jobs ended and are gone keep their places as well, and have not ended. Guard: ended, and a job under this id
-- was inserted by now.
UPDATE fencerow.handovers AS handover
SET receiver = lined.receiver, key = lined.key, hold_s = lined.hold_s, name = lined.name,
    {{not ended}}
FROM {{given for the line}}
WHERE handover.job_id = lined.id
  AND handover.state IS NOT NULL
RETURNING job_id;
