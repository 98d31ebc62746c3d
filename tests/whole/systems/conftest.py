"""Fixtures of the rebuilt systems: each scenario on SQLite and on PostgreSQL, with a world outside of its own."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fencerow.testing.postgres import PostgresServer
from tests.migrations.conftest import ground, shard_databases  # noqa: F401 (fixtures)
from tests.whole.systems.outside import FOLDER


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of the test's own, on each engine in turn, where tables may be made."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('sqlite_path')}"
    found = str(request.getfixturevalue("postgres_url"))
    server: PostgresServer = request.getfixturevalue("server")
    with server.connect(urlsplit(found).path[1:]) as connection:
        # The systems have tables of their own beside ours.
        connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    return found


@pytest.fixture(autouse=True)
def _outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services of the test's own, which answer well until their script says otherwise."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
