"""The pytest plugin, in an environment of its own."""
