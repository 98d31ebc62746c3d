"""What is sent at once, without a task, on a connection that stays at hand."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from fencerow.core.client.client import JobsClient
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.db import pools
from fencerow.db.postgres import PostgresEngine
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.conftest import postgres_engine
from tests.db.work import seen
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S

LOCK = "LOCK TABLE fencerow.jobs IN EXCLUSIVE MODE"
END_OTHERS = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND application_name = 'fencerow' AND datname = current_database()
"""


@pytest.fixture(autouse=True)
def direct(pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    stays_at_hand(monkeypatch)


def stays_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long this process stands still: else what was idle for some seconds is asked first."""
    monkeypatch.setattr(pools, "IDLE_S", math.inf)


def plain() -> Submission:
    return Submission(new_job())


async def one_after_the_other(client: JobsClient) -> None:
    """From then on a single submit goes at once."""
    for _ in range(2):
        await client.asubmit([plain()])


def begun(engine: PostgresEngine) -> int:
    """How many were sent at once and are not answered."""
    opened = engine._pools._apools[asyncio.get_running_loop()]
    return len(opened.pools[False].at_hand.begun)


@asynccontextmanager
async def locked(engine: PostgresEngine) -> AsyncIterator[None]:
    """Nobody can submit meanwhile."""
    async with await psycopg.AsyncConnection.connect(engine.conninfo) as connection:
        await connection.execute(LOCK)
        yield


async def test_a_cancelled_caller_leaves_what_was_sent_alone(pg: PostgresEngine) -> None:
    client = JobsClient(pg)
    await one_after_the_other(client)
    async with locked(pg):
        caller = asyncio.create_task(client.asubmit([wanted := plain()]))
        await asyncio.sleep(0)
        assert begun(pg) == 1
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        draining = asyncio.create_task(client._drain_submits())
        await asyncio.sleep(0)
        assert not draining.done(), "it is accepted, so it is waited for"
    await draining
    assert seen(pg, wanted.job.id)
    await pg._pools.aanswered(PATIENCE_S)  # nobody waits for the wake-up behind it
    assert begun(pg) == 0


async def test_a_cancelled_caller_of_an_operation_leaves_it_alone(pg: PostgresEngine) -> None:
    await pg.arun(store.submit([new_job()]))
    async with locked(pg):
        running = asyncio.create_task(pg.arun(store.submit([job := new_job()])))
        await asyncio.sleep(0)
        assert begun(pg) == 1, "it needs no task of its own"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await pg._pools.aanswered(PATIENCE_S)
    assert begun(pg) == 0, "its answer was read to its end"
    assert seen(pg, job.id)


async def test_who_comes_meanwhile_goes_with_the_next(pg: PostgresEngine) -> None:
    client = JobsClient(pg)
    await one_after_the_other(client)
    async with locked(pg):
        callers = [asyncio.create_task(client.asubmit([plain()])) for _ in range(3)]
        await asyncio.sleep(0)
        assert begun(pg) == 1
    ((first,), (second,), (third,)) = await asyncio.gather(*callers)
    assert all(seen(pg, each.id) for each in (first, second, third))


async def test_what_is_at_hand_is_anybodys(postgres_url: str) -> None:
    engine = PostgresEngine(
        postgres_url, store.postgres_queries(), pool_max=2
    )  # one is for our own statements
    client = JobsClient(engine)
    try:
        await one_after_the_other(client)
        async with asyncio.timeout(PATIENCE_S):
            await engine.arun(store.submit_gated([new_job()]))  # in a transaction, by the driver's own ways
            await one_after_the_other(client)
            async with engine._pools.aheld():
                waiting = asyncio.create_task(engine.arun(store.clock()))
                await asyncio.sleep(0.01)
                assert not waiting.done()
            await waiting
    finally:
        await engine.aclose()


async def test_a_connection_that_the_server_closed_is_not_used(pg: PostgresEngine) -> None:
    client = JobsClient(pg, patience_s=0)
    await one_after_the_other(client)
    async with await psycopg.AsyncConnection.connect(pg.conninfo, autocommit=True) as other:
        await other.execute(END_OTHERS)
    await asyncio.sleep(0.05)
    await client.asubmit([wanted := plain()])
    assert seen(pg, wanted.job.id)


async def test_what_the_server_refuses_is_told_and_its_connection_goes_on(pg: PostgresEngine) -> None:
    client = JobsClient(pg)
    await one_after_the_other(client)
    with pytest.raises(psycopg.errors.CheckViolation):
        await client.asubmit([Submission(new_job(priority=1_000))])
    await one_after_the_other(client)
    with pytest.raises(psycopg.DataError, match="NUL"):
        await client.asubmit([Submission(new_job(queue="a\0b"))])
    await client.asubmit([wanted := plain()])
    assert seen(pg, wanted.job.id)


def test_an_event_loop_ends_while_something_is_under_way(
    postgres_url: str, recwarn: pytest.WarningsRecorder
) -> None:
    engine = postgres_engine(postgres_url)

    async def left(locking: psycopg.Connection[object]) -> None:
        client = JobsClient(engine)
        await one_after_the_other(client)
        locking.execute(LOCK)
        left_behind.append(asyncio.create_task(client.asubmit([plain()])))
        await asyncio.sleep(0)
        assert begun(engine) == 1

    left_behind: list[asyncio.Task[object]] = []
    with psycopg.connect(postgres_url) as locking:
        asyncio.run(left(locking))
    assert left_behind[0].cancelled()
    deadline = time.monotonic() + PATIENCE_S
    while engine._pools._watchdog._watched:  # the thread's own, while it sends a wake-up that was left
        assert time.monotonic() < deadline, "who began it has heard, and given the connection back"
        time.sleep(0.001)
    engine.close()
    gc.collect()
    assert [str(each.message) for each in recwarn] == []
