"""Many jobs in one call of a handler, each with an outcome of its own."""
