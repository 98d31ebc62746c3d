-- What was said, in and out. The id comes from what happened, so that writing it twice writes it once.
CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    address TEXT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('in', 'out')),
    text TEXT NOT NULL
);
