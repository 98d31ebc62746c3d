-- One writer at a time: an event's id is its place in the log from the beginning, and nothing is left to do here.

-- name: read_settled
-- Everything is settled always.
SELECT COALESCE(max(event.id), 0) FROM fencerow.events AS event;

-- name: sequence_events
-- Nothing is without a place.
SELECT 0, NULL, NULL, NULL, NULL, 0 FROM (SELECT :mark, :lows, :highs, :limit) AS asked;

-- name: settle_events
-- Nothing is to be noted.
SELECT :settled WHERE false;

-- name: head_of_events
-- The greatest id that was ever given, whether its event is still there or not.
SELECT MAX(COALESCE((SELECT max(event.id) FROM fencerow.events AS event), 0),
           COALESCE((SELECT max(marks.trimmed) FROM fencerow.event_marks AS marks), 0));

-- name: place_moved_events
-- Events have their places from the beginning here.
SELECT 1 WHERE false;
