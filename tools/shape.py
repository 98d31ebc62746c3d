"""Writes what the migrations make of a fresh database, for `doctor` to compare with: python3 tools/shape.py

Beside the migrations of each wing lies what they make, so that a new wing touches no file but its own. What a later
migration changes goes to the package of that one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from fencerow.core.schema.rooms import packages
from fencerow.core.store import store
from fencerow.db.migration import migrations
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.doctor.examine import with_queries
from fencerow.doctor.shape import FILE, Shape, shape_of
from fencerow.testing.postgres import PostgresServer

AnyEngine = PostgresEngine | SqliteEngine


def shapes(engine: AnyEngine) -> dict[str, Shape]:
    """What the migrations of each package make of an empty database."""
    with_queries(engine)
    brought_by = {
        each.version: package for package in packages() for each in migrations(package, engine.dialect)
    }
    made: dict[str, tuple[str, str]] = {}  # of each thing: the package that made it last, and its definition
    for version, shape in _migrated(engine):
        made = {
            what: made[what] if what in made and made[what][1] == text else (brought_by[version], text)
            for what, text in shape.items()
        }
    return {
        package: {what: text for what, (owner, text) in sorted(made.items()) if owner == package}
        for package in dict.fromkeys(brought_by.values())
    }


def _migrated(engine: AnyEngine) -> Iterator[tuple[int, Shape]]:
    """Each migration in turn: its number, and the shape of the database after it."""
    for each in store.known_migrations(engine.dialect):
        store.migrate(engine, to=each.version)
        yield each.version, shape_of(engine)


def text(shape: Shape) -> str:
    return json.dumps(shape, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    with PostgresServer(fast=True) as server, tempfile.TemporaryDirectory() as folder:
        engines: list[AnyEngine] = [
            PostgresEngine(server.create_role_and_schema(), store.postgres_queries()),
            SqliteEngine(Path(folder) / "jobs.db", store.sqlite_queries()),
        ]
        for engine in engines:
            for package, shape in shapes(engine).items():
                Path(str(files(package).joinpath(engine.dialect, FILE))).write_text(text(shape))
            engine.close()


if __name__ == "__main__":
    main()
