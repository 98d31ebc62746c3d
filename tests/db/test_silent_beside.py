"""Several connections of a pool fell silent, and nobody closed them: one is asked, and the others are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from fencerow.core.store import store
from fencerow.db import thread_pools
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer
from tests.db.silence import Silence
from tests.kit.pace import PATIENCE_S, slower


@pytest.fixture
async def engine(
    tcp_server: PostgresServer, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[PostgresEngine]:
    """Each connection that was in use must answer before it is used again."""
    monkeypatch.setattr(thread_pools, "IDLE_S", -1.0)
    made = PostgresEngine(
        f"postgresql://app:{tcp_server.password}@127.0.0.1:{silence.port}/app",
        store.postgres_queries(),
        pool_max=6,
        connect_timeout_s=PATIENCE_S,
        statement_timeout_s=slower(2.0),
    )
    yield made
    await made.aclose()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The connections that were asked."""
    found: list[object] = []
    ask, aask = ConnectionPool.check_connection, AsyncConnectionPool.check_connection

    def note(connection: Any) -> None:
        found.append(connection)
        ask(connection)

    async def anote(connection: Any) -> None:
        found.append(connection)
        await aask(connection)

    monkeypatch.setattr(ConnectionPool, "check_connection", note)
    monkeypatch.setattr(AsyncConnectionPool, "check_connection", anote)
    return found


async def test_of_threads(engine: PostgresEngine, silence: Silence, asked: list[object]) -> None:
    with engine._pools.connection(), engine._pools.connection(), engine._pools.connection():
        pass
    silence.fall(deaf=True)
    await asyncio.to_thread(engine.run, store.clock())

    assert len(asked) == 1


async def test_of_an_event_loop(engine: PostgresEngine, silence: Silence, asked: list[object]) -> None:
    pools = engine._pools
    async with pools.aconnection(), pools.aconnection(), pools.aconnection():
        pass
    silence.fall(deaf=True)
    async with pools.aconnection() as answers:
        await answers.execute("SELECT 1")

    assert len(asked) == 1
    async with pools.aconnection():
        pass
    assert asked[1:] == [answers], "what came afterwards is asked as ever"
