"""A server that is away is one error with the true reason, soon, and no lines of a pool in the user's log."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator

import pytest
from psycopg_pool import ConnectionPool, PoolTimeout

from fencerow import App
from fencerow.core.store import store
from fencerow.errors import Unavailable
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE
from tests.kit.pace import slower

LIMIT_S = slower(2.0)


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port on which nobody listens, and nobody else can meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def url_of(what: str, server: PostgresServer, port: int) -> str:
    if what == "stopped":
        return f"postgresql://app@127.0.0.1:{port}/app"
    return (
        "postgresql://app@nosuch.invalid/app" if what == "unresolvable" else server.conninfo("nosuch", ROLE)
    )


@pytest.mark.usefixtures("_template")  # it makes the role
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("stopped", "Connection refused"),
        ("unresolvable", "resolve host"),
        ("missing database", 'database "nosuch" does not exist'),
    ],
)
async def test_the_caller_gets_the_reason_and_the_log_no_lines_of_a_pool(
    what: str, reason: str, server: PostgresServer, deaf_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with App(url_of(what, server, deaf_port)) as app:
        app.config = type(app.config)(url=app.config.url, connect_timeout_s=LIMIT_S)

        @app.job
        async def send(to: str) -> None: ...

        with caplog.at_level(logging.INFO), pytest.raises(Unavailable, match=reason) as refused:
            await send.asubmit("ada")
        waiting = (app.engine.arun(store.clock()) for _ in range(3))
        told = await asyncio.gather(*waiting, return_exceptions=True)

    assert [each for each in told if reason not in str(each)] == []
    assert refused.value.what == f"PostgreSQL gave no connection within {LIMIT_S:g} s"
    assert [each.getMessage() for each in caplog.records if each.name == "psycopg.pool"] == []


def test_another_pool_of_the_program_logs_as_before(caplog: pytest.LogCaptureFixture) -> None:
    with (
        ConnectionPool(
            "host=127.0.0.1 port=1 user=app dbname=app", min_size=1, open=False, name="mine"
        ) as pool,
        pytest.raises(PoolTimeout),
    ):
        pool.wait(LIMIT_S)

    assert "error connecting in 'mine'" in caplog.text
