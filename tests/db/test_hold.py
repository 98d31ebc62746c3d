"""A commit on a user's own connection that raised: only a refusal by the server is taken for one."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fencerow.db.adapters.hold import is_doubtful
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine


@pytest.mark.parametrize(
    ("state", "doubtful"),
    [(None, True), ("08006", True), ("57P01", True), ("23505", False), ("40001", False)],
)
def test_a_commit_is_in_doubt_unless_a_server_refused_it(state: str | None, doubtful: bool) -> None:
    engine: Any = object.__new__(PostgresEngine)

    assert is_doubtful(RuntimeError("at the commit"), state, engine) is doubtful


@pytest.mark.parametrize(
    ("name", "doubtful"),
    [("SQLITE_IOERR_FSYNC", True), ("SQLITE_IOERR", True), ("SQLITE_FULL", False), ("SQLITE_BUSY", False)],
)
def test_a_commit_to_a_file_is_in_doubt_where_the_disk_failed(name: str, doubtful: bool) -> None:
    """What SQLite refuses before it writes (a lock, a full disk) it has rolled back."""
    engine: Any = object.__new__(SqliteEngine)
    engine.path = Path("jobs.db")
    error = sqlite3.OperationalError("at the commit")
    error.sqlite_errorname = name

    assert is_doubtful(error, None, engine) is doubtful
