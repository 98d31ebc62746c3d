-- The sequencer: gives committed events their places in the log, one transaction after another under a lock.

-- name: read_settled
-- How far the log is settled: every event with an id up to there has its place, or was rolled back.
SELECT COALESCE(max(marks.settled), 0) FROM fencerow.event_marks AS marks;

-- name: sequence_events
-- Give the next places to committed events that have none: those after the mark, and those that have committed late,
-- in gaps that were left before it. All are found under one snapshot, so that an event never gets a place before one
-- of its key that committed earlier; and in order of id, which is that of the commits where writers of a key wait
-- for each other. Returns how many, the greatest id after the mark that was placed, the ids that were placed in
-- gaps, the gaps that are left up to that id, the number of a transaction after which all will begin that the
-- snapshot does not know, and the oldest number that is still under way.
-- Guard: no place yet. The lock of the sequencers is taken in an earlier statement.
-- Each gap is looked into by itself, up to the limit: where events are joined with all gaps, a plan that is kept walks the
-- whole log in the order of its ids, and asks for each event whether it lies in a gap.
-- Events are found by their ids, and hashed with their places: one more list, of one entry that the planner takes for a hundred,
-- keeps it from comparing each with each where it believes that there are few.
WITH late AS MATERIALIZED (
    SELECT event.id
    FROM unnest(CAST(:lows AS bigint[]), CAST(:highs AS bigint[])) AS gap (low, high)
    CROSS JOIN LATERAL (
        SELECT inside.id
        FROM fencerow.events AS inside
        WHERE inside.id BETWEEN gap.low AND gap.high AND inside.seq IS NULL
        ORDER BY inside.id
        LIMIT CAST(:limit AS bigint)
    ) AS event
    ORDER BY event.id
    LIMIT CAST(:limit AS bigint)
),
fresh AS MATERIALIZED (
    SELECT event.id
    FROM fencerow.events AS event
    WHERE event.id > CAST(:mark AS bigint) AND event.seq IS NULL
    ORDER BY event.id
    LIMIT CAST(:limit AS bigint) - (SELECT count(*) FROM late)
),
numbered AS MATERIALIZED (
    SELECT found.id,
           row_number() OVER (ORDER BY found.id)
           + GREATEST((SELECT COALESCE(max(event.seq), 0) FROM fencerow.events AS event WHERE event.seq IS NOT NULL),
                      (SELECT COALESCE(max(marks.trimmed), 0) FROM fencerow.event_marks AS marks)) AS seq
    FROM json_array_elements('[1]') AS once CROSS JOIN (SELECT late.id FROM late UNION ALL SELECT fresh.id FROM fresh) AS found
),
placed AS (
    UPDATE fencerow.events AS event
    SET seq = numbered.seq
    FROM numbered
    WHERE event.id = ANY(ARRAY(SELECT numbered.id FROM numbered)) AND event.id = numbered.id AND event.seq IS NULL
    RETURNING event.id, CAST(CAST(pg_current_xact_id() AS text) AS bigint) AS xid
),
gaps AS (
    SELECT lag(event.id, 1, CAST(:mark AS bigint)) OVER (ORDER BY event.id) + 1 AS low, event.id - 1 AS high
    FROM fencerow.events AS event
    WHERE event.id > CAST(:mark AS bigint) AND event.id <= (SELECT max(fresh.id) FROM fresh)
)
SELECT count(*),
       (SELECT max(fresh.id) FROM fresh),
       CAST((SELECT json_agg(late.id) FROM late) AS text),
       CAST((SELECT json_agg(json_build_array(gaps.low, gaps.high)) FROM gaps WHERE gaps.low <= gaps.high) AS text),
       max(placed.xid),
       CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)
FROM placed;

-- name: settle_events
-- Note how far the log is settled. Guard: the mark never goes back.
INSERT INTO fencerow.event_marks (settled) VALUES (CAST(:settled AS bigint))
ON CONFLICT (one) DO UPDATE SET settled = EXCLUDED.settled
WHERE event_marks.settled < EXCLUDED.settled;

-- name: head_of_events
-- The greatest place that was ever given.
SELECT GREATEST((SELECT COALESCE(max(event.seq), 0) FROM fencerow.events AS event WHERE event.seq IS NOT NULL),
                (SELECT COALESCE(max(marks.trimmed), 0) FROM fencerow.event_marks AS marks));

-- name: place_moved_events
-- Give events that came from a file their places: they are in the order of their ids already, and all of them are
-- committed. Guard: no place yet; the mark never goes back.
UPDATE fencerow.events SET seq = id WHERE seq IS NULL;
INSERT INTO fencerow.event_marks (settled)
SELECT GREATEST((SELECT COALESCE(max(event.id), 0) FROM fencerow.events AS event),
                (SELECT COALESCE(max(marks.trimmed), 0) FROM fencerow.event_marks AS marks))
ON CONFLICT (one) DO UPDATE SET settled = EXCLUDED.settled
WHERE event_marks.settled < EXCLUDED.settled;
