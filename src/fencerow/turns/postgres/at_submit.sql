-- What a submit does for the first job of a key of which no job is live. See turns/at_submit.py.

-- fragment: may give turns
-- Whether this role may do all that a turn needs: one that may not leaves it to a look.
has_column_privilege(CAST($$fencerow.gates$$ AS regclass), 'name', 'INSERT')
AND has_column_privilege(CAST($$fencerow.gates$$ AS regclass), 'name', 'UPDATE')
AND has_table_privilege(CAST($$fencerow.gates$$ AS regclass), 'SELECT')
AND has_table_privilege(CAST($$fencerow.jobs$$ AS regclass), 'SELECT')
AND has_table_privilege(CAST($$fencerow.queues$$ AS regclass), 'SELECT')

-- fragment: free for who may lock
-- Those of these gates where to try, as far as a look without locks tells; none for a role that may give no turns.
fencerow.free_gates(CAST(:gates AS text[]), CAST(:queues AS text[]), {{may give turns}}) AS free (gate)

-- name: free_gates
-- The look alone: where much is sent before anything may be locked, and where a job that needs limits too may wait at one of them.
SELECT free.gate FROM {{free for who may lock}};

-- name: lock_free_turns
-- Behind that look: lock those of these gates that nobody has locked, and tell which have their turn free.
SELECT mine.gate FROM fencerow.lock_free_turns(CAST(:gates AS text[])) AS mine (gate);

-- name: free_turns
-- Both at once. Each of the statements in them has a snapshot of its own.
SELECT mine.gate
FROM fencerow.lock_free_turns(ARRAY(SELECT free.gate FROM {{free for who may lock}})) AS mine (gate);

-- name: submit_one_keyed
-- submit_one for a job that needs the turn of its key and no other: it has that at once, as above, or comes to the gate.
-- Guard: as in submit, so that nobody comes to the gate for a row that was left out; and the turn is given under the lock of the gate, by who has counted behind it.
WITH mine AS MATERIALIZED (
    SELECT EXISTS (
        SELECT 1
        FROM fencerow.lock_free_turns(ARRAY(
            SELECT free.gate
            FROM fencerow.free_gates(
                ARRAY[CAST(:gate AS text)], ARRAY[CAST(:queue AS text)], {{may give turns}}
            ) AS free (gate)
        ))
    ) AS has_turn
),
come AS (
    INSERT INTO fencerow.gate_arrivals (gate)
    SELECT CAST(:gate AS text)
    FROM mine
    WHERE NOT mine.has_turn
),
inserted AS (
INSERT INTO fencerow.jobs ({{new columns}}, state, {{where it waits}}, exclusive, exclusive_at_once, strict, share)
SELECT
    CAST(:id AS uuid), {{said once}}, CAST(:args_bytes AS integer), CAST(:args AS json),
    {{said once of labels}},
    CASE WHEN clock.has_turn THEN 'queued' ELSE 'waiting' END, CASE WHEN NOT clock.has_turn THEN CAST(:gate AS text) END,
    CAST(:exclusive AS text), CAST(:exclusive_at_once AS integer), CAST(:strict AS boolean), CAST(:share AS text)
FROM (SELECT mine.has_turn, fencerow.now() AS now FROM mine) AS clock
RETURNING id
)
SELECT mine.has_turn,
       CASE WHEN inserted.id IS NULL THEN fencerow.refuse_left_out()
            WHEN {{none came again}} THEN true ELSE fencerow.refuse_repeated(ARRAY[inserted.id]) END
FROM mine LEFT JOIN inserted ON true;
