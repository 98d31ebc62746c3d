"""A foreign program that writes bytes into a text column of a SQLite file is refused: no JSON could hold them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from tests.kit.jobs import new_job

BYTES = b"\x80\xff"
# The migrator's own, and those of webhooks, which are looked at row by row.
APART = ("fencerow_schema_", "fencerow_webhook_")


@pytest.fixture
def stranger(lite: SqliteEngine) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(lite.path, isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("column", ["args", "queue", "exclusive", "limits", "state"])
def test_bytes_are_refused_and_jobs_are_listed_all_the_same(
    lite: SqliteEngine, stranger: sqlite3.Connection, column: str
) -> None:
    lite.run(store.submit([new_job(), new_job()]))

    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        stranger.execute(f"UPDATE fencerow_jobs SET {column} = ?", (BYTES,))

    assert stranger.execute("SELECT count(*) FROM fencerow_jobs").fetchone() == (2,)


@pytest.mark.parametrize("file", ["", "-workers"])
def test_each_text_column_of_each_table_refuses_bytes(lite: SqliteEngine, file: str) -> None:
    lite.run(store.list_workers())  # makes their file
    with closing(sqlite3.connect(f"{lite.path}{file}")) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        open_ones = [
            f"{table}.{name}"
            for table, text in tables
            if table.startswith("fencerow") and not table.startswith(APART)
            for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall()
            if kind == "TEXT" and not re.search(rf"typeof\({name}\)|CHECK \({name} (IN \(|= ')", text)
        ]

    assert len(tables) > 0 and open_ones == []
