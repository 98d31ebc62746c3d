"""A file in WAL mode, under a library that may not write to it in that mode."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import Busy, ConfigError, FencerowError


@pytest.mark.parametrize(
    ("table", "is_open", "error"),
    [("orders", True, ConfigError), ("orders", False, ConfigError), ("fencerow_jobs", True, Busy)],
)
def test_it_is_refused_by_name_and_stays_as_it_is(
    tmp_path: Path, table: str, is_open: bool, error: type[FencerowError]
) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as application:
        application.execute("PRAGMA journal_mode = wal")
        application.execute(f"CREATE TABLE {table} (id integer)")
        if not is_open:
            application.close()
        engine = SqliteEngine(path, store.sqlite_queries(), journal_mode="truncate")

        with closing(engine), pytest.raises(error, match="journal mode wal"):
            engine.run(store.clock())

    with closing(sqlite3.connect(path)) as after:
        assert after.execute("PRAGMA journal_mode").fetchone() == ("wal",)
