"""Where the named queries lie for each dialect: those of the job tables, and of the primitives below."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fencerow.db import postgres, sqlite
from fencerow.db.queries import Migration, Queries, load, migrations

PACKAGE = "fencerow.store"
PRIMITIVES = "fencerow.primitives"


@lru_cache(
    maxsize=8
)  # they never change, and reading them takes a hundred times longer than making an engine
def postgres_queries(schema: str = "fencerow") -> Queries:
    """The queries for PostgreSQL, their tables in this schema."""
    return _loaded("postgres", postgres.names(schema))


@lru_cache(maxsize=8)
def sqlite_queries(prefix: str = "fencerow_") -> Queries:
    """The queries for a SQLite file, their tables under this prefix."""
    return _loaded("sqlite", sqlite.names(prefix))


def known_migrations(dialect: str) -> list[Migration]:
    """The schema steps that this code knows, in order."""
    return migrations(PACKAGE, dialect)


def _loaded(dialect: str, rename: Callable[[str], str]) -> Queries:
    return load(PACKAGE, dialect, dialect, rename).joined(load(PRIMITIVES, dialect, dialect, rename))
