"""A client_encoding that a role, a database or the environment says, and that cannot hold all texts."""

from __future__ import annotations

import psycopg
import pytest

from fencerow import App
from fencerow.db.adapters.lent_postgres import is_utf8
from fencerow.db.probe import connect_postgres
from fencerow.errors import UnusableConnection

EMOJI = "\N{GRINNING FACE}"


@pytest.fixture(autouse=True)
def _latin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")


async def test_our_own_connections_say_utf8(postgres_url: str) -> None:
    async with App(postgres_url) as app:

        @app.job
        async def echo(text: str) -> str:
            return text

        async with app.worker():
            handle = await echo.asubmit(EMOJI)
            found = await handle.aresult()

    assert found == EMOJI


def test_one_that_is_passed_in_is_refused(postgres_url: str) -> None:
    with App(postgres_url) as app, psycopg.connect(postgres_url) as connection:

        @app.job
        def echo(text: str) -> None: ...

        with pytest.raises(UnusableConnection, match="client_encoding LATIN1"):
            echo.using(connection=connection).submit("plain")


def test_the_connection_of_a_migration_says_it_too(postgres_url: str) -> None:
    with connect_postgres(postgres_url, 5.0) as connection:
        found = connection.execute("SELECT %s::text", [EMOJI]).fetchone()

    assert found == (EMOJI,)


def test_utf8_is_known_however_it_is_spelled() -> None:
    """asyncpg asks for 'utf-8', a server reports UTF8, and a pooler what was asked for."""
    assert all(map(is_utf8, ("UTF8", "utf-8", "Unicode", "UTF_8")))
    assert not any(map(is_utf8, ("LATIN1", "SQL_ASCII", "UTF16", "")))
