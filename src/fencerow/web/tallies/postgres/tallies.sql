-- What came to hooks. Counts are added, so gateways may note beside one another; of instants the latest stays.

-- name: note_hooks
-- Add what a gateway has counted since its last note: for each hook how many of each kind, and how many seconds ago the last of
-- them came. Rows in the order of their names, so that two gateways do not wait for each other in a circle.
INSERT INTO fencerow.hook_tallies AS known
    (hook, received, received_at, repeated, repeated_at, refused, refused_at, refusal)
SELECT new.hook, new.received, fencerow.later(clock.now, -new.received_s), new.repeated, fencerow.later(clock.now, -new.repeated_s),
       new.refused, fencerow.later(clock.now, -new.refused_s), new.refusal
FROM (SELECT fencerow.now() AS now) AS clock
CROSS JOIN json_to_recordset(CAST(:counts AS json)) AS new (
    hook text, received bigint, received_s double precision, repeated bigint, repeated_s double precision, refused bigint,
    refused_s double precision, refusal text
)
ORDER BY new.hook
ON CONFLICT (hook) DO UPDATE
SET received = known.received + EXCLUDED.received,
    received_at = greatest(known.received_at, EXCLUDED.received_at),
    repeated = known.repeated + EXCLUDED.repeated,
    repeated_at = greatest(known.repeated_at, EXCLUDED.repeated_at),
    refused = known.refused + EXCLUDED.refused,
    refused_at = greatest(known.refused_at, EXCLUDED.refused_at),
    refusal = CASE WHEN known.refused_at >= EXCLUDED.refused_at OR EXCLUDED.refused_at IS NULL THEN known.refusal
                   ELSE EXCLUDED.refusal
              END;

-- name: list_hook_tallies
-- All that were noted, by name, at most :limit; the clock beside each, and alone where there is none.
SELECT tally.hook, tally.received, fencerow.us(tally.received_at), tally.repeated, fencerow.us(tally.repeated_at), tally.refused,
       fencerow.us(tally.refused_at), tally.refusal, fencerow.us(clock.now)
FROM (SELECT fencerow.now() AS now) AS clock
LEFT JOIN (SELECT * FROM fencerow.hook_tallies AS few ORDER BY few.hook LIMIT CAST(:limit AS integer)) AS tally ON true
ORDER BY tally.hook;
