"""Where our tables and queries lie: in rooms of the core, in `db` below it, and in the wings."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.db.migration import Migration, migrations

PACKAGES = ("fencerow.core.store", "fencerow.core.schema", "fencerow.db.sql")
_of_wings: list[str] = []


def known_migrations(dialect: str) -> list[Migration]:
    """The migrations of the schema that this code knows, numbered through whichever room they belong to."""
    found = [migration for package in packages() for migration in migrations(package, dialect)]
    return sorted(found, key=lambda migration: migration.version)


def add_packages(names: Sequence[str]) -> None:
    """Said once for each wing, when the package is imported: its queries lie there."""
    _of_wings.extend(names)


def packages() -> list[str]:
    """Where queries lie: in the core's own packages, that of the job tables first, in `db`, and in the wings."""
    return [*PACKAGES, *_of_wings]
