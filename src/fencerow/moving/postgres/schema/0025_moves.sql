-- compatible_from: 1
-- Moves: whether the jobs of this database go to another one, or come from it.

CREATE TABLE fencerow.moves (
    id uuid PRIMARY KEY,
    side text NOT NULL CHECK (side IN ('from', 'to')),       -- which this database is
    state text NOT NULL CHECK (state IN ('draining', 'closed', 'moved', 'filling', 'open')),
    other text NOT NULL,                                     -- the other database, without a password
    owner uuid,                                              -- of where they come from: whose its payloads outside were
    since timestamptz NOT NULL,
    begun_by text
);

-- What came so far. It is put into its tables at the end, all of it in one transaction.
CREATE TABLE fencerow.move_parts (
    move_id uuid NOT NULL,
    table_name text NOT NULL,
    first_row bigint NOT NULL,                               -- how many rows of the table came before
    row_count bigint NOT NULL CHECK (row_count > 0),
    rows jsonb NOT NULL,                                     -- an array for each row, in the order of the columns
    PRIMARY KEY (move_id, table_name, first_row)
);

-- Keeps a table as it is until all has come: two databases with the same jobs would run them twice. Whoever puts the
-- rows in says so in its transaction.
CREATE FUNCTION fencerow.refuse_while_filling() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF COALESCE(current_setting('moving.filling', true), '') <> 'on'
       AND EXISTS (SELECT 1 FROM fencerow.moves AS move WHERE move.state = 'filling') THEN
        RAISE EXCEPTION USING ERRCODE = 'FR993', MESSAGE = 'the jobs of another database are being moved here';
    END IF;
    RETURN NEW;
END $$;
