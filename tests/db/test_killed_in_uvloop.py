"""A server process that ends with something unread: the socket has an error then, and uvloop calls its reader once."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import OutcomeUnknown
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S
from tests.kit.servers import ROLE, TEMPLATE, MigratedServer


def in_uvloop(scenario: Callable[[PostgresEngine], Coroutine[Any, Any, None]]) -> None:
    async def main(url: str) -> None:
        engine = PostgresEngine(url, store.postgres_queries())
        async with asyncio.timeout(PATIENCE_S):
            await scenario(engine)
        await engine.aclose()

    with MigratedServer(fast=True) as server:
        uvloop.run(main(server.conninfo(TEMPLATE, ROLE)))


@asynccontextmanager
async def ended(engine: PostgresEngine, like: str) -> AsyncIterator[None]:
    """End the server's processes that last ran such a statement, before they read what is sent in the block."""
    async with engine.asession() as session:
        found = await session.connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()", [like]
        )
        pids = [pid for (pid,) in await found.fetchall()]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.kill(pid, signal.SIGQUIT)  # it says so by a notice, which answers nothing
        os.kill(pid, signal.SIGCONT)
    while any(map(is_alive, pids)):
        time.sleep(0.01)  # the event loop sees what it said and its end together


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_who_waits_for_an_answer_is_told() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        for _ in range(2):  # prepared, then sent at once
            await engine.arun(store.submit([new_job()]))
        async with ended(engine, "%jobs%"):
            asked = asyncio.create_task(engine.arun(store.submit([new_job()])))
            await asyncio.sleep(0.1)
            assert not asked.done()
        with pytest.raises(OutcomeUnknown):
            await asked

    in_uvloop(scenario)


def test_who_listens_listens_anew() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        loop, heard, sockets = asyncio.get_running_loop(), asyncio.Queue[str | None](), list[int]()
        add_reader = loop.add_reader

        def noted(fd: int, callback: Callable[..., object], *given: Any) -> None:
            sockets.append(fd)
            add_reader(fd, callback, *given)

        loop.add_reader = noted  # type: ignore[method-assign, assignment]
        stop = engine.listen(heard.put_nowait, loop=loop)
        assert await heard.get() is None
        listening = sockets[0]
        async with ended(engine, "%LISTEN%"):
            os.write(listening, b"?")
        assert await heard.get() is None
        await asyncio.to_thread(stop)

    in_uvloop(scenario)
