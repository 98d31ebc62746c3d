"""Guards for the user's own tables, with or without jobs."""
