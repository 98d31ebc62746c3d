"""Event loops that nobody closes."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import Any

import psycopg
import pytest

from fencerow.core.store import store
from fencerow.db.begun import settle
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import Unavailable
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.conftest import postgres_engine
from tests.core.worker.stage import until
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S

OPEN = "SELECT pid FROM pg_stat_activity WHERE application_name = 'fencerow' AND datname = current_database()"


def end(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for each in tasks:
        each.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()


def test_their_connections_are_given_back(postgres_url: str) -> None:
    if is_pooled(postgres_url):
        pytest.skip("the server sees the connections of the pooler, which keeps them")
    engine = postgres_engine(postgres_url)
    loops = [asyncio.new_event_loop() for _ in range(3)]

    def request(loop: asyncio.AbstractEventLoop) -> None:
        loop.run_until_complete(engine.arun(store.clock()))

    def until_open(count: int) -> bool:
        """The server sees a moment later that a client has gone."""
        until = time.monotonic() + PATIENCE_S
        while (found := len(watching.execute(OPEN).fetchall())) != count and time.monotonic() < until:
            time.sleep(0.01)
        return found == count

    with psycopg.connect(postgres_url, autocommit=True) as watching:
        for loop in loops:
            thread = threading.Thread(target=request, args=[loop])
            thread.start()
            thread.join(PATIENCE_S)
        is_one = until_open(1)
        engine.close()
        is_none = until_open(0)
    for loop in loops:
        end(loop)

    assert is_one and is_none


def test_who_began_something_is_told_when_its_loop_runs_again_after_a_close(postgres_url: str) -> None:
    """A program that closes between two `run_until_complete`. What was sent at once has no task that could see it."""
    if is_pooled(postgres_url):
        pytest.skip("nothing is prepared through a pooler")
    engine, loop = postgres_engine(postgres_url), asyncio.new_event_loop()
    waited_for: asyncio.Future[None] = loop.create_future()

    async def begin() -> None:
        await engine.arun(store.submit([new_job()]))
        assert engine.begin(store.submit([new_job()]), partial(settle, waited_for)), "it is sent at once"

    async def wait() -> None:
        await asyncio.wait([waited_for], timeout=PATIENCE_S)

    loop.run_until_complete(begin())
    engine.close()
    loop.run_until_complete(wait())
    end(loop)

    assert waited_for.cancelled()


def test_who_waits_for_a_connection_is_told_of_a_close_when_its_loop_runs_again(postgres_url: str) -> None:
    engine = PostgresEngine(
        postgres_url, store.postgres_queries(), pool_max=2, connect_timeout_s=10 * PATIENCE_S
    )  # one is for our own statements
    loop, holding = asyncio.new_event_loop(), engine._pools.aheld()

    async def begin() -> asyncio.Task[int]:
        await holding.__aenter__()
        waiting = asyncio.create_task(engine.arun(store.clock()))
        await until(lambda: engine._pools._apools[loop].pools[False].at_hand.waiting == 1)
        return waiting

    waiting = loop.run_until_complete(begin())
    engine.close()
    loop.run_until_complete(asyncio.wait([waiting], timeout=PATIENCE_S))

    assert waiting.done(), "without the word it waits as long as for a connection"
    with pytest.raises(Unavailable, match="was closed"):
        waiting.result()
    end(loop)


def test_a_loop_that_an_interrupt_stopped_in_its_pool_opens_connections_again(postgres_url: str) -> None:
    """Ctrl-C may come while the pool itself is at work: it ends the task that opens connections and takes them back."""

    class Interrupts:
        async def run(self) -> None:
            raise KeyboardInterrupt

    engine, loop = postgres_engine(postgres_url), asyncio.new_event_loop()

    async def both() -> None:
        async with asyncio.timeout(PATIENCE_S):
            async with engine._pools.aheld(), engine._pools.aheld():
                pass

    async def interrupted() -> None:
        pool: Any = engine._pools._apools[loop].pools[False].pool
        pool.run_task(Interrupts())
        await asyncio.sleep(PATIENCE_S)

    loop.run_until_complete(engine.arun(store.clock()))
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(interrupted())
    loop.run_until_complete(both())
    loop.run_until_complete(engine.aclose())
    engine.close()
    end(loop)
