"""How to talk to a database. Knows no jobs, and imports nothing of the core."""
