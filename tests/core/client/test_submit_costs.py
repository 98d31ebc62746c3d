"""What one submit costs, by what no other load falsifies: waits for the server, and calls of Python."""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import threading
from statistics import median
from typing import Any

import psycopg
import pytest

from fencerow import App, Config
from fencerow.core.db.postgres import PostgresEngine
from fencerow_proof.servers.pgbouncer import is_pooled

SUBMITS = 20
# 285 with CPython 3.11 and psycopg 3.3, the wake-up included. Other versions call what they call, so there is room.
CALLS_MAX = 320


def test_a_submit_is_one_wait_for_the_server_and_few_calls_of_python(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    with App(config=Config(url=pg.conninfo)) as app:

        @app.job(name="noop", queue="bench")
        async def noop(number: int) -> None: ...

        for number in range(3):
            noop.submit(number)  # connections, plans and caches are warm
        app.engine.flush(10)
        app.engine.wake = lambda messages: None  # type: ignore[method-assign] # another thread's waits
        waits, wait, mine = 0, psycopg.Connection.wait, threading.get_ident()
        of_each: list[int] = []

        def counted(self: Any, *given: Any, **more: Any) -> Any:
            nonlocal waits
            waits += threading.get_ident() == mine  # a pool opens connections in threads of its own
            return wait(self, *given, **more)

        monkeypatch.setattr(psycopg.Connection, "wait", counted)
        profile = cProfile.Profile()
        profile.enable()
        for number in range(SUBMITS):
            before = waits
            noop.submit(number)
            of_each.append(waits - before)
        profile.disable()

    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    assert median(of_each) == 1, of_each  # a connection that the pool has just opened is met once
    assert calls / SUBMITS < CALLS_MAX


async def test_a_submit_in_an_event_loop_is_one_task(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App(config=Config(url=pg.conninfo)) as app:

        @app.job(name="noop", queue="bench")
        async def noop(number: int) -> None: ...

        await noop.asubmit(0)
        made = [0]
        create = asyncio.create_task

        def counted(*given: Any, **more: Any) -> Any:
            made[0] += 1
            return create(*given, **more)

        monkeypatch.setattr(asyncio, "create_task", counted)
        await noop.asubmit(1)

    assert made == [1]  # what a cancelled caller leaves alone: the engine needs none besides
