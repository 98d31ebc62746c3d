"""What docs/reference/ is made of: the public names as they are found, and their docstrings as Markdown."""
