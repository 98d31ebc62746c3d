"""Where the named queries lie for each dialect: those of the job tables, and of each wing."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce

from fencerow.core.schema.rooms import packages
from fencerow.core.store.points import POINTS
from fencerow.db.queries import Queries, load, postgres_names, sqlite_names
from fencerow.db.query_files import fragments


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


def _loaded(dialect: str, rename: Callable[[str], str]) -> Queries:
    jobs, *others = packages()
    given = POINTS.filled([jobs, *others], dialect)
    own = load(jobs, dialect, dialect, rename, given)
    lent = fragments(jobs, dialect, given)  # what all others may use
    return reduce(Queries.joined, (load(package, dialect, dialect, rename, lent) for package in others), own)
