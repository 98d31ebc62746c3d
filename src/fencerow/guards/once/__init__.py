"""Effects that happen once, and windows in which equal things count once."""
