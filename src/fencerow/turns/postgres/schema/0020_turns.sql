-- compatible_from: 1
-- Gates: where jobs wait for their turn of an exclusive key or of a limit. The jobs themselves lie where all jobs lie.

-- A gate: where jobs wait for their turn. Its row is what those lock who give turns there; how many turns are taken
-- stands nowhere, it is counted from the jobs.
CREATE TABLE fencerow.gates (
    name text PRIMARY KEY,                       -- with its kind in front: key:<key>
    next_at timestamptz,                         -- when it is to be looked at, if no arrival tells sooner
    kept_for uuid,                               -- a job that has waited long at several gates: the next turn is its own
    kept_until timestamptz                       -- but no longer than until then
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX gates_next ON fencerow.gates (next_at) WHERE next_at IS NOT NULL;

-- Nobody has claimed the turn of a job of this queue at this gate: for a while jobs of other queues go first there.
CREATE TABLE fencerow.passed_queues (
    gate text NOT NULL,
    queue text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (gate, queue)
);

-- "Look at this gate": a job came to it, or one that had a turn there has ended. Inserting takes no
-- lock, so it may happen in a user's transaction.
CREATE TABLE fencerow.gate_arrivals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    gate text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX gate_arrivals_gate ON fencerow.gate_arrivals (gate);  -- a look takes all arrivals of its gates

-- Those of these gates of keys where a submit may try to give a turn: nobody has one and nobody waits, who would go first, and the
-- queue of the job is not paused. Where a queue is passed over others go first, and there are none. It locks nothing. A
-- role that may not lock gates gives no turns and may not read here either: so this is a function, which looks at may_lock first.
-- A turn is not stored: the jobs of a key that are queued or running have its turns. Each gate is looked up by its name (OFFSET
-- 0), by an index also where the plan was kept from a time when the table was empty.
CREATE FUNCTION fencerow.free_gates(gates text[], queues text[], may_lock boolean) RETURNS SETOF text LANGUAGE plpgsql VOLATILE
    SET enable_seqscan = off AS $$
BEGIN
    IF NOT may_lock THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT place.gate
    FROM unnest(gates, queues) AS place (gate, queue)
    WHERE NOT EXISTS (SELECT 1 FROM fencerow.jobs AS holder
                      WHERE holder.exclusive = substr(place.gate, 5) AND holder.state IN ('queued', 'running') OFFSET 0)
      AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS waiting
                      WHERE waiting.gate = place.gate AND waiting.state = 'waiting' OFFSET 0)
      AND place.queue <> ALL(ARRAY(SELECT queue.name FROM fencerow.queues AS queue WHERE queue.paused_at IS NOT NULL));
END $$;

-- Lock those of these gates of keys that nobody has locked, until the transaction ends, and tell which of them have their turn free.
-- What has no row gets one, in the order in which gates are locked, and waits only for who makes the same row. Where a turn is
-- kept for another, or an instant is noted, a look has more to say.
-- It counts in a statement behind the locks, and as the function is VOLATILE that has a later snapshot: what was given by who had a lock is seen.
CREATE FUNCTION fencerow.lock_free_turns(gates text[]) RETURNS SETOF text LANGUAGE plpgsql VOLATILE
    SET enable_seqscan = off AS $$
DECLARE
    locked text[];
BEGIN
    IF cardinality(gates) = 0 THEN
        RETURN;
    END IF;
    WITH made AS (
        INSERT INTO fencerow.gates AS known (name)
        SELECT place.gate
        FROM unnest(gates) AS place (gate)
        ORDER BY place.gate COLLATE "C"
        ON CONFLICT (name) DO NOTHING
        RETURNING known.name
    ),
    there AS (
        SELECT gate.name
        FROM fencerow.gates AS gate
        WHERE gate.name = ANY(gates)
          AND (SELECT count(*) FROM made) >= 0
          AND num_nonnulls(gate.next_at, gate.kept_until) = 0
        FOR UPDATE SKIP LOCKED
    )
    SELECT array_agg(mine.name)
    INTO locked
    FROM (SELECT made.name FROM made UNION ALL SELECT there.name FROM there) AS mine;
    RETURN QUERY
    SELECT place.gate
    FROM unnest(locked) AS place (gate)
    WHERE NOT EXISTS (SELECT 1 FROM fencerow.jobs AS holder
                      WHERE holder.exclusive = substr(place.gate, 5) AND holder.state IN ('queued', 'running') OFFSET 0);
END $$;
