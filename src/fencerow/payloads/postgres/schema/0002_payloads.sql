-- compatible_from: 1
-- Whose the payloads are that lie outside the database.

CREATE TABLE fencerow.payload_owner (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),  -- there is one row
    id uuid NOT NULL                                   -- made by chance, and in the name of each object
);
INSERT INTO fencerow.payload_owner (id) VALUES (gen_random_uuid());
