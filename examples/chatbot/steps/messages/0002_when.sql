-- Not in the first step, so that there are two for each shard.
ALTER TABLE messages ADD COLUMN written_at TIMESTAMPTZ;
CREATE INDEX messages_of_address ON messages (workspace, address);
