-- What came to hooks. Counts are added, so gateways may note beside one another; of instants the latest stays.

-- name: note_hooks
-- Add what a gateway has counted since its last note: for each hook how many of each kind, and how many seconds ago the last of
-- them came.
INSERT INTO fencerow.hook_tallies
    (hook, received, received_at, repeated, repeated_at, refused, refused_at, refusal)
SELECT new.value ->> 'hook', new.value ->> 'received',
       fencerow.now() - CAST((new.value ->> 'received_s') * 1000000 AS INTEGER), new.value ->> 'repeated',
       fencerow.now() - CAST((new.value ->> 'repeated_s') * 1000000 AS INTEGER), new.value ->> 'refused',
       fencerow.now() - CAST((new.value ->> 'refused_s') * 1000000 AS INTEGER), new.value ->> 'refusal'
FROM json_each(:counts) AS new
WHERE true
ON CONFLICT (hook) DO UPDATE
SET received = received + excluded.received,
    received_at = max(COALESCE(received_at, excluded.received_at), COALESCE(excluded.received_at, received_at)),
    repeated = repeated + excluded.repeated,
    repeated_at = max(COALESCE(repeated_at, excluded.repeated_at), COALESCE(excluded.repeated_at, repeated_at)),
    refused = refused + excluded.refused,
    refused_at = max(COALESCE(refused_at, excluded.refused_at), COALESCE(excluded.refused_at, refused_at)),
    refusal = CASE WHEN refused_at >= excluded.refused_at OR excluded.refused_at IS NULL THEN refusal
                   ELSE excluded.refusal
              END;

-- name: list_hook_tallies
-- All that were noted, by name, at most :limit; the clock beside each, and alone where there is none.
SELECT tally.hook, tally.received, tally.received_at, tally.repeated, tally.repeated_at, tally.refused, tally.refused_at,
       tally.refusal, clock.now
FROM (SELECT fencerow.now() AS now) AS clock
LEFT JOIN (SELECT * FROM fencerow.hook_tallies AS few ORDER BY few.hook LIMIT :limit) AS tally ON true
ORDER BY tally.hook;
