"""Durable jobs in your own PostgreSQL or SQLite database."""

__version__ = "0.1.0.dev0"
