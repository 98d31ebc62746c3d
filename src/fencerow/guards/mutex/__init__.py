"""guards.mutex."""
