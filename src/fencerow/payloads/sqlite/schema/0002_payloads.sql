-- compatible_from: 1
-- Whose the payloads are that lie outside the database.

CREATE TABLE fencerow.payload_owner (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    id TEXT NOT NULL,
    CONSTRAINT text_not_bytes CHECK ('blob' NOT IN (typeof(id)))
);
INSERT INTO fencerow.payload_owner (id)
SELECT substr(made.hex, 1, 8) || '-' || substr(made.hex, 9, 4) || '-4' || substr(made.hex, 14, 3) || '-8' || substr(made.hex, 18, 3)
       || '-' || substr(made.hex, 21, 12)
FROM (SELECT lower(hex(randomblob(16))) AS hex) AS made;
