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
from fencerow.db import wakeups
from fencerow.db.postgres import PostgresEngine
from fencerow.db.wire import ConnectionWire
from fencerow_proof.servers.pgbouncer import is_pooled

SUBMITS = 20
CALLERS = 100
# 269 with CPython 3.11 and psycopg 3.3, 180 with those of the event loop and of its wake-up, and 43 for each of a
# hundred callers. Other versions call what they call, so there is room.
CALLS_MAX = 290
LOOP_CALLS_MAX = 200
AMONG_MANY_CALLS_MAX = 50


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


async def test_a_submit_in_an_event_loop_is_no_task_and_one_message_with_its_wake_up(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    async with App(config=Config(url=pg.conninfo)) as app:

        @app.job(name="noop", queue="bench")
        async def noop(number: int) -> None: ...

        await noop.asubmit(0)
        await asyncio.to_thread(app.engine.flush, 10)
        monkeypatch.setattr(wakeups.WakeupSender, "taken_along", lambda self, given: given)  # nothing gathers
        monkeypatch.setattr(wakeups.WakeupSender, "post", None)  # nor is sent by the thread
        made, messages = [0], [0]
        ask = ConnectionWire.ask
        create = asyncio.create_task

        def counted(*given: Any, **more: Any) -> Any:
            made[0] += 1
            return create(*given, **more)

        def sent(*given: Any) -> None:
            messages[0] += 1
            ask(*given)

        await noop.asubmit(1)  # what it sends is prepared
        monkeypatch.setattr(asyncio, "create_task", counted)
        monkeypatch.setattr(ConnectionWire, "ask", sent)
        profile = cProfile.Profile()
        profile.enable()
        for number in range(SUBMITS):
            await noop.asubmit(number)
        profile.disable()

    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    assert made == [0]  # no cancel of a caller reaches what it sent
    assert messages == [SUBMITS]
    assert calls / SUBMITS < LOOP_CALLS_MAX


async def test_a_submit_among_many_callers_is_few_calls_of_python(pg: PostgresEngine) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    async with App(config=Config(url=pg.conninfo)) as app:

        @app.job(name="noop", queue="bench")
        async def noop(number: int) -> None: ...

        async def caller() -> None:
            for number in range(SUBMITS):
                await noop.asubmit(number)

        await asyncio.gather(*(noop.asubmit(number) for number in range(CALLERS)))
        profile = cProfile.Profile()
        profile.enable()
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        profile.disable()

    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    assert calls / (CALLERS * SUBMITS) < AMONG_MANY_CALLS_MAX
