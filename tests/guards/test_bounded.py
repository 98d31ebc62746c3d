"""A store that is away or silent: the answer is a refusal within the time that was asked for, never a guess."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.db import left_tasks
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import DatabaseError, Unavailable
from fencerow.guards.bounded import awithin, within
from fencerow.guards.once import DedupeWindow, once
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.proxy import FaultProxy
from tests.guards.places import At
from tests.kit.leftovers import no_threads_left
from tests.kit.pace import PATIENCE_S, slower

TIMEOUT_S = 0.5
SOON_S = slower(60.0)  # on a machine that stands still; a third of the engine's own patience

Ask = Callable[[At, list[str]], Awaitable[Any]]


@pytest.fixture
async def far(tcp_server: PostgresServer, proxy: FaultProxy) -> AsyncIterator[At]:
    url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
    engine = PostgresEngine(
        url, store.postgres_queries(), statement_timeout_s=3 * SOON_S, connect_timeout_s=3 * SOON_S
    )
    with no_threads_left():
        yield At(engine)
        proxy.heal()  # what still waits for an answer gets one: its patience is long
        for asking in [each for each in threading.enumerate() if each.name == "fencerow-bounded"]:
            await asyncio.to_thread(asking.join, PATIENCE_S)  # else it opened another pool after the end
        await asyncio.wait_for(
            asyncio.gather(*left_tasks._left, return_exceptions=True), PATIENCE_S
        )  # and these
        await engine.aclose()


async def calls(at: At, done: list[str]) -> Any:
    return await asyncio.to_thread(once(at, "k", timeout_s=TIMEOUT_S).call, lambda: done.append("effect"))


async def acalls(at: At, done: list[str]) -> Any:
    async def effect() -> None:
        done.append("effect")

    return await once(at, "k", timeout_s=TIMEOUT_S).acall(effect)


async def admits(at: At, done: list[str]) -> Any:
    admitted = await asyncio.to_thread(DedupeWindow(at, "w", 5, timeout_s=TIMEOUT_S).admit, "k", "v")
    done.append(admitted.value)


async def aadmits(at: At, done: list[str]) -> Any:
    done.append((await DedupeWindow(at, "w", 5, timeout_s=TIMEOUT_S).aadmit("k", "v")).value)


ASKS = (calls, acalls, admits, aadmits)


async def all_refused(at: At) -> None:
    await asyncio.gather(*(refused(at, ask) for ask in ASKS))


async def refused(at: At, ask: Ask) -> None:
    done: list[str] = []
    began = time.monotonic()
    with pytest.raises(DatabaseError) as caught:
        await ask(at, done)

    assert time.monotonic() - began < SOON_S
    assert done == [], "it went on without an answer"
    assert caught.value.repeat in ("yes", "ask")


@pytest.mark.parametrize("connected", [False, True], ids=["from the start", "when connected"])
async def test_a_silent_server_is_a_refusal_in_time(far: At, proxy: FaultProxy, connected: bool) -> None:
    if connected:
        await asyncio.to_thread(far.engine.run, store.clock())
        await far.engine.arun(store.clock())
    proxy.black_hole()
    await all_refused(far)


async def test_a_server_that_is_away_is_a_refusal_in_time(far: At, proxy: FaultProxy) -> None:
    proxy.refuse_new()
    await all_refused(far)


def test_an_answer_that_comes_too_late_is_undone() -> None:
    answered, undone = threading.Event(), threading.Event()

    def slow() -> str:
        answered.wait(PATIENCE_S)
        return "taken"

    with pytest.raises(Unavailable, match=r"within 0\.05 s"):
        within(0.05, "it is done", slow, lambda answer: undone.set() if answer == "taken" else None)
    answered.set()
    assert undone.wait(PATIENCE_S)


async def test_an_answer_that_comes_after_a_cancel_is_undone() -> None:
    answered, undone = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        await answered.wait()
        return "taken"

    async def undo(_answer: str) -> None:
        undone.set()

    waiting = asyncio.create_task(awithin(PATIENCE_S, "it is done", slow(), undo))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    answered.set()
    await asyncio.wait_for(undone.wait(), PATIENCE_S)


def test_an_error_of_the_question_reaches_who_asks() -> None:
    with pytest.raises(ZeroDivisionError):
        within(PATIENCE_S, "it is done", lambda: 1 / 0, lambda _: None)
