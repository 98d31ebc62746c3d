"""How to talk to a database. Knows no jobs."""
