"""A file with a row in each table, and an empty PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencerow.config import Config
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.moving.moving import Mover
from tests.moving.rows import plant


@pytest.fixture
def file(migrated_path: Path) -> Iterator[SqliteEngine]:
    made = SqliteEngine(migrated_path, store.sqlite_queries())
    yield made
    made.close()


@pytest.fixture
def full(file: SqliteEngine) -> SqliteEngine:
    with closing(sqlite3.connect(file.path)) as connection:
        plant(connection)
    return file


@pytest.fixture
def other(postgres_url: str) -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres_url, store.postgres_queries())
    yield made
    made.close()


def mover(file: SqliteEngine, other: PostgresEngine, **more: Any) -> Mover:
    """Who moves all of a file to the other, in parts of one row."""
    made = Mover(
        file, file, other, Config(url=f"sqlite:///{file.path}"), "postgresql://there/db", part_rows=1
    )
    return replace(made, **more)
