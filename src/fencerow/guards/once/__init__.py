"""guards.once."""
