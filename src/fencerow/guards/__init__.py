"""Guards for the user's own tables, with or without jobs.

docs/guide/safe-handlers.md says which one is for what.
"""
