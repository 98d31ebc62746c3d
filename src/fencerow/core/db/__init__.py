"""Floor 1: how to talk to a database. Knows no jobs."""
