-- Moves: this database as the one to which jobs are moved.

-- name: read_moves
-- The moves that this database knows: one at most.
SELECT CAST(move.id AS text), move.side, move.state, move.other, CAST(move.owner AS text), fencerow.us(move.since), move.begun_by
FROM fencerow.moves AS move;

-- name: begin_filling
-- Note from where jobs come. Guard: no move is known, so of two that begin at once one does.
INSERT INTO fencerow.moves (id, side, state, other, owner, since, begun_by)
SELECT CAST(:id AS uuid), 'to', 'filling', :other, CAST(:owner AS uuid), (SELECT fencerow.now()), :actor
WHERE NOT EXISTS (SELECT 1 FROM fencerow.moves)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: put_part
-- Keep some rows of a table until all have come. Guard: the move is being filled, and they follow those that came. Of two
-- that bring the same at once one does.
INSERT INTO fencerow.move_parts (move_id, table_name, first_row, row_count, rows)
SELECT move.id, :table, CAST(:first AS bigint), CAST(:count AS bigint), CAST(:rows AS jsonb)
FROM fencerow.moves AS move
WHERE move.id = CAST(:id AS uuid)
  AND move.state = 'filling'
  AND CAST(:first AS bigint) = COALESCE((SELECT max(part.first_row + part.row_count)
                                         FROM fencerow.move_parts AS part
                                         WHERE part.move_id = move.id AND part.table_name = :table), 0)
ON CONFLICT (move_id, table_name, first_row) DO NOTHING
RETURNING first_row;

-- name: count_parts
-- How many rows of each table have come.
SELECT part.table_name, CAST(sum(part.row_count) AS bigint)
FROM fencerow.move_parts AS part
WHERE part.move_id = CAST(:id AS uuid)
GROUP BY part.table_name;

-- name: list_parts
-- The parts of a table, in order.
SELECT part.first_row
FROM fencerow.move_parts AS part
WHERE part.move_id = CAST(:id AS uuid) AND part.table_name = :table
ORDER BY part.first_row;

-- name: open_filled
-- Let workers have the jobs that came: in the transaction that puts them into their tables. Guard: it is being filled, by this
-- move.
UPDATE fencerow.moves SET state = 'open' WHERE id = CAST(:id AS uuid) AND state = 'filling' RETURNING id;

-- name: pass_filling
-- Let this transaction put rows in while nobody else may.
SELECT set_config('moving.filling', 'on', true);

-- name: own_payloads
-- Own the payloads outside that the file owned. Guard: the move is this one.
UPDATE fencerow.payload_owner
SET id = move.owner
FROM fencerow.moves AS move
WHERE move.id = CAST(:id AS uuid) AND move.owner IS NOT NULL;

-- name: forget_filling
-- Take a move back. Guard: it has not come to its end.
DELETE FROM fencerow.moves WHERE id = CAST(:id AS uuid) AND state = 'filling' RETURNING id;

-- name: remove_parts
-- Forget what came.
DELETE FROM fencerow.move_parts WHERE move_id = CAST(:id AS uuid);
