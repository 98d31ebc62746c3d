"""Writes what the migrations make of a fresh database, for `doctor` to compare with: python3 tools/shape.py"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.db.sqlite import SqliteEngine
from fencerow.core.store import store
from fencerow.doctor.examine import with_queries
from fencerow.doctor.shape import Shape, shape_of
from fencerow.testing.postgres import PostgresServer

FOLDER = Path(__file__).parents[1] / "src" / "fencerow" / "doctor"


def fresh_shape(engine: PostgresEngine | SqliteEngine) -> Shape:
    """The shape of a database in which only the migrations were run."""
    store.migrate(engine)
    with_queries(engine)
    return shape_of(engine)


def text(shape: Shape) -> str:
    return json.dumps(dict(sorted(shape.items())), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    with PostgresServer(fast=True) as server, tempfile.TemporaryDirectory() as folder:
        engines: list[PostgresEngine | SqliteEngine] = [
            PostgresEngine(server.create_role_and_schema(), store.postgres_queries()),
            SqliteEngine(Path(folder) / "jobs.db", store.sqlite_queries()),
        ]
        for engine in engines:
            (FOLDER / engine.dialect / "shape.json").write_text(text(fresh_shape(engine)))
            engine.close()


if __name__ == "__main__":
    main()
