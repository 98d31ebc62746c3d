-- Moves: this file as the database that jobs are moved away from.

-- name: read_moves
-- The moves that this database knows: one at most.
SELECT move.id, move.side, move.state, move.other, move.owner, move.since, move.begun_by
FROM fencerow.moves AS move;

-- name: begin_move
-- Note where the jobs go. Guard: no move is known, so of two that begin at once one does. The owner of the payloads outside
-- goes along with the jobs.
INSERT INTO fencerow.moves (id, side, state, other, owner, since, begun_by)
SELECT :id, 'from', 'draining', :other, owner.id, fencerow.now(), :actor
FROM fencerow.payload_owner AS owner
WHERE NOT EXISTS (SELECT 1 FROM fencerow.moves)
RETURNING id;

-- name: count_jobs_running
-- How many jobs a worker has.
SELECT count(*) FROM fencerow.jobs AS job WHERE job.state = 'running';

-- name: close_for_move
-- Let nothing change here any more. Guard: no job runs, and the move is this one. Who looks for payloads outside that nobody
-- needs finds another owner here from now on, so it removes none of those that the jobs need elsewhere.
UPDATE fencerow.moves
SET state = 'closed'
WHERE id = :id AND state = 'draining' AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.state = 'running')
RETURNING id;

-- name: own_no_payloads
-- Have another owner of payloads outside. Guard: the move is closed, and this is the owner that it has noted.
UPDATE fencerow.payload_owner
SET id = :new
WHERE id = (SELECT move.owner FROM fencerow.moves AS move WHERE move.id = :id AND move.state = 'closed')
RETURNING id;

-- name: own_payloads_again
-- Be the owner again that the move has noted. Guard: the move is this one.
UPDATE fencerow.payload_owner
SET id = (SELECT move.owner FROM fencerow.moves AS move WHERE move.id = :id)
WHERE EXISTS (SELECT 1 FROM fencerow.moves AS move WHERE move.id = :id AND move.state = 'closed')
RETURNING id;

-- name: end_move
-- Note that all has come. Guard: it was closed.
UPDATE fencerow.moves SET state = 'moved' WHERE id = :id AND state = 'closed' RETURNING id;

-- name: forget_move
-- Take a move back. Guard: it has not come to its end.
DELETE FROM fencerow.moves WHERE id = :id AND state IN ('draining', 'closed') RETURNING id;
