-- Turns that come with a submit: of the first job of a key of which no job is live. See turns/at_submit.py.

-- name: free_gates
-- Those of these gates where to try, as far as a look without locks tells; none for a role that may not lock gates.
SELECT free.gate
FROM fencerow.free_gates(
    CAST(:gates AS text[]), CAST(:queues AS text[]),
    has_column_privilege(CAST($$fencerow.gates$$ AS regclass), 'name', 'UPDATE')
) AS free (gate);

-- name: lock_free_gates
-- Lock those of these gates that nobody has locked, until the transaction ends. What has no row gets one, in the order in which gates are
-- locked, and waits only for who makes the same row. Where a turn is kept for another, or an instant is noted, a look has more to say.
-- Whether a turn was given by who had a lock is asked in a later statement (taken_gates).
WITH made AS (
    INSERT INTO fencerow.gates AS known (name)
    SELECT place.gate
    FROM unnest(CAST(:gates AS text[])) AS place (gate)
    ORDER BY place.gate COLLATE "C"
    ON CONFLICT (name) DO NOTHING
    RETURNING known.name
),
there AS (
    SELECT gate.name
    FROM fencerow.gates AS gate
    WHERE gate.name = ANY(CAST(:gates AS text[]))
      AND (SELECT count(*) FROM made) >= 0
      AND num_nonnulls(gate.next_at, gate.kept_until) = 0
    FOR UPDATE SKIP LOCKED
)
SELECT made.name FROM made
UNION ALL
SELECT there.name FROM there;

-- name: taken_gates
-- Those of these gates of keys where somebody has a turn, which is stored nowhere: jobs of the key that are queued or running have it. They
-- are locked, so nobody gets one meanwhile. Each gate is looked up by its name (OFFSET 0), as in take_arrivals.
SELECT place.gate
FROM unnest(CAST(:gates AS text[])) AS place (gate)
WHERE EXISTS (SELECT 1 FROM fencerow.jobs AS holder
              WHERE holder.exclusive = substr(place.gate, 5) AND holder.state IN ('queued', 'running') OFFSET 0);
