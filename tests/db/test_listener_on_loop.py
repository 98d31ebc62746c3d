"""An event loop hears by itself what a server announces, and lets go of the socket before it is closed."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fencerow.db.postgres import PostgresEngine
from tests.kit.pace import PATIENCE_S

OURS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE query LIKE '%LISTEN%' AND datname = current_database() AND pid <> pg_backend_pid()
"""


class Heard:
    """What came, and in which thread."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[str | None] = asyncio.Queue()
        self.threads: set[int] = set()

    def __call__(self, message: str | None) -> None:
        self.threads.add(threading.get_ident())
        self.messages.put_nowait(message)

    async def next(self) -> str | None:
        return await asyncio.wait_for(self.messages.get(), PATIENCE_S)


@pytest.fixture
async def heard(pg: PostgresEngine) -> AsyncIterator[Heard]:
    found = Heard()
    stop = pg.listen(found, loop=asyncio.get_running_loop())
    assert await found.next() is None
    yield found
    await asyncio.to_thread(stop)


async def test_it_is_told_in_the_event_loop(pg: PostgresEngine, heard: Heard) -> None:
    for each in ("a", "b"):
        pg.wake([each])
    assert [await heard.next(), await heard.next()] == ["a", "b"]
    assert heard.threads == {threading.get_ident()}


async def test_a_connection_that_is_lost_comes_back_and_says_so(pg: PostgresEngine, heard: Heard) -> None:
    with pg._pools.connection() as connection:
        connection.execute(OURS)

    assert await heard.next() is None
    pg.wake(["a"])
    assert await heard.next() == "a"


async def test_a_loop_that_refuses_the_socket_is_asked_again(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, heard, refused = asyncio.get_running_loop(), Heard(), asyncio.Event()

    def add_reader(*_: object) -> None:
        monkeypatch.undo()
        refused.set()
        raise OSError("no room in the selector")

    monkeypatch.setattr(loop, "add_reader", add_reader)
    stop = pg.listen(heard, loop=loop)

    assert await heard.next() is None
    assert refused.is_set()
    await asyncio.to_thread(stop)


async def test_when_nobody_listens_any_more_the_loop_reads_no_socket_of_it(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, heard, read = asyncio.get_running_loop(), Heard(), set[int]()
    add, remove = loop.add_reader, loop.remove_reader

    def add_reader(fd: int, *rest: Any) -> None:
        read.add(fd)
        add(fd, *rest)

    def remove_reader(fd: int) -> bool:
        os.fstat(fd)  # an error, where it is closed already
        read.discard(fd)
        return remove(fd)

    monkeypatch.setattr(loop, "add_reader", add_reader)
    monkeypatch.setattr(loop, "remove_reader", remove_reader)
    stop = pg.listen(heard, loop=loop)
    assert await heard.next() is None
    assert len(read) == 1

    await asyncio.to_thread(stop)

    assert not [each for each in threading.enumerate() if each.name == "fencerow-listen"]
    assert read == set()
