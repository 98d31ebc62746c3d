"""From a row to a result. Knows the database only through the store, and jobs only by their handlers."""
