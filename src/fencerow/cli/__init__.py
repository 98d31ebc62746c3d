"""The `fencerow` command."""
