"""Where the named queries of the job tables lie, for each dialect."""

from __future__ import annotations

from fencerow.db import postgres, sqlite
from fencerow.db.queries import Migration, Queries, load, migrations

PACKAGE = "fencerow.store"


def postgres_queries(schema: str = "fencerow") -> Queries:
    """The queries for PostgreSQL, their tables in this schema."""
    return load(PACKAGE, "postgres", "postgres", postgres.names(schema))


def sqlite_queries(prefix: str = "fencerow_") -> Queries:
    """The queries for a SQLite file, their tables under this prefix."""
    return load(PACKAGE, "sqlite", "sqlite", sqlite.names(prefix))


def known_migrations(dialect: str) -> list[Migration]:
    """The schema steps that this code knows, in order."""
    return migrations(PACKAGE, dialect)
