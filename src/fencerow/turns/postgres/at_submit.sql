-- Turns that come with a submit: of the first job of a key of which no job is live. See turns/at_submit.py.

-- fragment: free for who may lock
-- Those of these gates where to try, as far as a look without locks tells; none for a role that may not lock gates.
fencerow.free_gates(
    CAST(:gates AS text[]), CAST(:queues AS text[]),
    has_column_privilege(CAST($$fencerow.gates$$ AS regclass), 'name', 'UPDATE')
) AS free (gate)

-- name: free_gates
-- The look alone, where much is sent before anything may be locked.
SELECT free.gate FROM {{free for who may lock}};

-- name: lock_free_turns
-- Behind that look: lock those of these gates that nobody has locked, and tell which have their turn free.
SELECT mine.gate FROM fencerow.lock_free_turns(CAST(:gates AS text[])) AS mine (gate);

-- name: free_turns
-- Both at once. Each of the statements in them has a snapshot of its own.
SELECT mine.gate
FROM fencerow.lock_free_turns(ARRAY(SELECT free.gate FROM {{free for who may lock}})) AS mine (gate);
