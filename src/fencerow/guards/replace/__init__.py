"""guards.replace."""
