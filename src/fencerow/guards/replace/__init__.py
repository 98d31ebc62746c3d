"""The rows of a source, replaced as a whole."""
