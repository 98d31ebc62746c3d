"""An app on a fresh database of each kind, with a table of the user's beside ours."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from fencerow import App, Config
from fencerow.testing.postgres import PostgresServer
from tests.core.app.conftest import url  # noqa: F401 (a fixture)


class Table:
    """`messages`: an id, a name, how often a backfill met the row; and `ranges`, where a handler notes what it got."""

    def __init__(self, url: str) -> None:  # noqa: F811
        self.url = url
        self.on_postgres = url.startswith("postgresql:")
        self.rows("CREATE TABLE messages (id integer PRIMARY KEY, name text, met integer NOT NULL DEFAULT 0)")
        self.rows("CREATE TABLE ranges (first text, last text)")

    def rows(self, text: str) -> list[Any]:
        if self.on_postgres:
            with psycopg.connect(self.url, autocommit=True) as connection:
                cursor = connection.execute(text.encode())
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None)) as lite:
            return lite.execute(text).fetchall()

    def fill(self, *ids: int) -> None:
        self.rows("INSERT INTO messages (id, name) VALUES " + ", ".join(f"({i}, 'n{i:04}')" for i in ids))

    def met(self) -> dict[int, int]:
        """How often each row was met."""
        return dict(self.rows("SELECT id, met FROM messages"))


@pytest.fixture
def table(url: str, request: pytest.FixtureRequest) -> Table:  # noqa: F811
    if url.startswith("postgresql:"):
        server: PostgresServer = request.getfixturevalue("server")
        with server.connect(urlsplit(url).path[1:]) as owner:
            owner.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    else:
        Path(url.removeprefix("sqlite:///")).touch()
    return Table(url)


@pytest.fixture
async def app(table: Table) -> AsyncIterator[App]:
    quick = Config(poll_min_s=0.01, poll_max_s=0.05, shutdown_s=1.0)
    async with App(table.url, config=quick, actor="ada") as made:
        made.check_or_create()
        yield made
