"""Where the named queries lie for each dialect: those of the job tables, and of each wing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce

from fencerow.core.db.migration import Migration, migrations
from fencerow.core.db.queries import Queries, load, postgres_names, sqlite_names
from fencerow.core.store.points import points

PACKAGE = "fencerow.core.store"
_of_wings: list[str] = []


@lru_cache(
    maxsize=8
)  # they never change, and reading them takes a hundred times longer than making an engine
def postgres_queries(schema: str = "fencerow") -> Queries:
    """The queries for PostgreSQL, their tables in this schema."""
    return _loaded("postgres", postgres_names(schema))


@lru_cache(maxsize=8)
def sqlite_queries(prefix: str = "fencerow_") -> Queries:
    """The queries for a SQLite file, their tables under this prefix."""
    return _loaded("sqlite", sqlite_names(prefix))


def known_migrations(dialect: str) -> list[Migration]:
    """The migrations of the schema that this code knows, numbered through whichever wing they belong to."""
    found = [migration for package in packages() for migration in migrations(package, dialect)]
    return sorted(found, key=lambda migration: migration.version)


def add_packages(names: Sequence[str]) -> None:
    """Said once for each wing, when the package is imported: its queries lie there."""
    _of_wings.extend(names)


def packages() -> list[str]:
    """Where queries lie: the core's own package, and those of the wings."""
    return [PACKAGE, *_of_wings]


def _loaded(dialect: str, rename: Callable[[str], str]) -> Queries:
    own = load(PACKAGE, dialect, dialect, rename, points(packages(), dialect))
    return reduce(Queries.joined, (load(package, dialect, dialect, rename) for package in _of_wings), own)
