"""The machine of every exploration: which orders to play, which come to the same, and what is told of one."""
