"""A wake-up behind a submit: nobody waits for its answer, and whatever becomes of that, it is heard."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from fencerow.core.client.client import JobsClient
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.db import prepared
from fencerow.db.postgres import PostgresEngine
from fencerow.db.prepared import NOTIFIES
from fencerow.db.queries import Query
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.conftest import postgres_engine
from tests.db.test_at_once import begun, one_after_the_other, plain, stays_at_hand
from tests.db.work import seen
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S

HELD = """
SELECT pg_advisory_xact_lock(4711), pg_notify(:channel, message) FROM unnest(CAST(:messages AS text[])) AS message
"""
END_WAITING = """
SELECT count(pg_terminate_backend(pid)) FROM pg_locks
WHERE locktype = 'advisory' AND NOT granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
OTHER = "other"
Heard = queue.Queue[str | None]


@pytest.fixture(autouse=True)
def held_up(pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wake-up behind a submit waits for a lock of the test's. The thread's does not."""
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    stays_at_hand(monkeypatch)
    monkeypatch.setattr(prepared, "NOTIFIES", Query("notify", (HELD,), ("channel", "messages")))


@pytest.fixture
def heard(pg: PostgresEngine) -> Iterator[Heard]:
    told: Heard = queue.Queue()
    stop = pg.listen(told.put)
    assert told.get(timeout=PATIENCE_S) is None
    yield told
    stop()


@pytest.fixture
def holding(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url) as connection:
        yield connection


async def submitted(engine: PostgresEngine, heard: Heard, holding: psycopg.Connection[Any]) -> JobsClient:
    """A job is stored, and its caller told, while its wake-up waits for the lock."""
    client = JobsClient(engine)
    await one_after_the_other(client)
    await engine._pools.aanswered(PATIENCE_S)
    engine.wake(["all before"])
    await asyncio.to_thread(engine.flush, PATIENCE_S)
    while await asyncio.to_thread(heard.get, timeout=PATIENCE_S) != "all before":
        pass
    holding.execute("SELECT pg_advisory_xact_lock(4711)")
    engine._wakeups._sender._rests_until = 0.0  # its time has come
    async with asyncio.timeout(PATIENCE_S):
        await client.asubmit([one := plain()])
    assert begun(engine) == 1, "its connection is in use for the wake-up"
    assert seen(engine, one.job.id)
    assert heard.empty()
    return client


async def hears(heard: Heard) -> bool:
    """Of the first job: another may be of a queue of its own."""
    while OTHER in str(await asyncio.to_thread(heard.get, timeout=PATIENCE_S)):
        pass
    return True


async def test_what_is_asked_next_goes_behind_it_on_the_same_connection(
    pg: PostgresEngine, heard: Heard, holding: psycopg.Connection[Any]
) -> None:
    client = await submitted(pg, heard, holding)
    second = asyncio.create_task(client.asubmit([two := plain()]))
    await asyncio.sleep(0.05)
    assert begun(pg) == 1 and not second.done()
    holding.rollback()
    await second
    assert seen(pg, two.job.id)
    assert await hears(heard)
    await pg._pools.aanswered(PATIENCE_S)
    assert begun(pg) == 0


@pytest.fixture
async def patient(postgres_url: str) -> AsyncIterator[PostgresEngine]:
    """Whoever goes behind a wake-up that waits for the lock does so for longer than a test waits."""
    engine = PostgresEngine(postgres_url, store.postgres_queries(), statement_timeout_s=2 * PATIENCE_S)
    yield engine
    await engine.aclose()


async def test_one_statement_alone_goes_behind_it(
    patient: PostgresEngine, heard: Heard, holding: psycopg.Connection[Any]
) -> None:
    """Else the watch of a wake-up that hangs could be put off for ever."""
    client = await submitted(patient, heard, holding)
    second = asyncio.create_task(client.asubmit([plain()]))
    await asyncio.sleep(0.05)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await JobsClient(patient).asubmit([three := plain()])
        assert seen(patient, three.job.id) and not second.done()
    finally:
        holding.rollback()
    await second


@pytest.mark.parametrize(
    "why", ["somebody waits", "it was cancelled", "a failover was seen", "another was silent"]
)
async def test_nothing_goes_behind_it_where_its_connection_is_needed_or_in_doubt(
    patient: PostgresEngine, heard: Heard, holding: psycopg.Connection[Any], why: str
) -> None:
    client = await submitted(patient, heard, holding)
    at_hand = patient._pools._apools[asyncio.get_running_loop()].pools[False].at_hand
    (held,) = at_hand.begun
    match why:
        case "somebody waits":
            at_hand.waiting += 1
        case "it was cancelled":
            patient._pools._cancelled.add(held.connection)
        case "a failover was seen":
            assert at_hand.drain() == []
        case _:
            patient._pools._watchdog.gave_up_at = time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await client.asubmit([two := plain()])
        assert seen(patient, two.job.id)
    finally:
        holding.rollback()


@pytest.mark.parametrize("how", ["ended", "hung"])
async def test_one_that_is_lost_is_sent_again(
    postgres_url: str, heard: Heard, holding: psycopg.Connection[Any], how: str
) -> None:
    """By the thread, while the lock is still held. What was sent behind it is stored once."""
    limit_s = PATIENCE_S if how == "ended" else 0.2
    engine = PostgresEngine(postgres_url, store.postgres_queries(), statement_timeout_s=limit_s)
    try:
        client = await submitted(engine, heard, holding)
        second = asyncio.create_task(client.asubmit([two := Submission(new_job(queue=OTHER))]))
        await asyncio.sleep(0.05)
        if how == "ended":
            assert holding.execute(END_WAITING).fetchone() == (1,)
        assert await hears(heard)
        await second
        assert seen(engine, two.job.id)
        await engine._pools.aanswered(PATIENCE_S)
        assert begun(engine) == 0
    finally:
        await engine.aclose()


async def test_one_that_waits_for_a_lock_holds_nothing_up_behind_it(
    postgres_url: str, heard: Heard, holding: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends its wait, and the thread sends it."""
    text = NOTIFIES.statements[0].replace("pg_notify(", "pg_advisory_xact_lock(4711), pg_notify(")
    monkeypatch.setattr(prepared, "NOTIFIES", Query("notify", (text,), ("channel", "messages")))
    engine = PostgresEngine(postgres_url, store.postgres_queries(), statement_timeout_s=2 * PATIENCE_S)
    try:
        client = await submitted(engine, heard, holding)
        async with asyncio.timeout(PATIENCE_S):
            await client.asubmit([two := plain()])
        assert seen(engine, two.job.id)
        assert await hears(heard)
    finally:
        holding.rollback()
        await engine.aclose()


async def test_who_closes_the_engine_waits_for_it(
    patient: PostgresEngine, heard: Heard, holding: psycopg.Connection[Any]
) -> None:
    await submitted(patient, heard, holding)
    closing = asyncio.create_task(patient.aclose())
    try:
        await asyncio.sleep(0.05)
        assert not closing.done() and heard.empty()
    finally:
        holding.rollback()
        await closing
    assert await hears(heard)


def test_an_event_loop_that_ends_leaves_it_to_the_thread(
    postgres_url: str, heard: Heard, holding: psycopg.Connection[Any]
) -> None:
    engine = postgres_engine(postgres_url)
    try:
        asyncio.run(submitted(engine, heard, holding))
        assert heard.get(timeout=PATIENCE_S) is not None
        engine.flush(PATIENCE_S)
        assert not engine._pools._watchdog._watched
    finally:
        holding.rollback()
        engine.close()
