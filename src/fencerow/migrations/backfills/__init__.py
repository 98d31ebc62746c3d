"""Large changes of rows, range by range."""
