"""What every outage needs: a place for its numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from fencerow.db import sqlite_file


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keep a line of numbers with the test's report; `-s` shows it."""

    def say(line: str) -> None:
        record_property("outage", line)
        sys.stdout.write(f"\n{line}\n")

    return say


@pytest.fixture(params=["truncate", "wal"])
def journal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both journals that a SQLite file may have, whatever this machine's SQLite would choose."""
    mode: str = request.param
    monkeypatch.setattr(sqlite_file, "wal_is_safe", lambda _version: mode == "wal")
    return mode
