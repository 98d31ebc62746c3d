"""What goes wrong around connections that stay at hand: failovers, forks, values of other types, contexts."""

from __future__ import annotations

import asyncio
import gc
import os
import time
import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

import psycopg
import pytest

from fencerow.core.client.client import JobsClient
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.db import at_once
from fencerow.db.held import HeldConnection
from fencerow.db.postgres import PostgresEngine
from fencerow.db.prepared import PreparedStatements
from fencerow.db.run import Tells
from fencerow.db.wakeup_channel import WakeupChannel
from fencerow.db.wire import ConnectionWire
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.conftest import postgres_engine
from tests.db.test_at_once import begun, one_after_the_other, plain
from tests.db.work import seen
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S

OURS = """
SELECT pid FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND application_name = 'fencerow' AND datname = current_database() ORDER BY pid
"""


@pytest.fixture(autouse=True)
def direct(postgres_url: str) -> None:
    if is_pooled(postgres_url):
        pytest.skip("nothing is prepared through a pooler")


class Region(StrEnum):
    NORTH = "north"


class Named:
    """Something that a context holds."""


async def test_a_failover_is_survived_though_several_are_at_hand(pg: PostgresEngine) -> None:
    idle: Sequence[HeldConnection] = ()
    async with asyncio.timeout(PATIENCE_S):
        # Until both have it prepared: the second submit may meet the connection of the first.
        while len(idle) < 2:
            await asyncio.gather(*(pg.arun(store.submit([new_job()])) for _ in range(2)))
            idle = pg._pools._apools[asyncio.get_running_loop()].pools[False].at_hand._idle
    for held in idle:  # as if what they lead to were a standby now
        held.wire.let_go()
        await held.connection.execute("SET default_transaction_read_only = on")
    await pg.arun(store.submit([job := new_job()]))
    assert seen(pg, job.id)


async def test_a_name_may_be_the_member_of_an_enum(pg: PostgresEngine) -> None:
    client = JobsClient(pg)
    await one_after_the_other(client)
    (stored,) = await client.asubmit([Submission(new_job(queue=Region.NORTH))])
    async with await psycopg.AsyncConnection.connect(pg.conninfo) as connection:
        found = await connection.execute("SELECT queue FROM fencerow.jobs WHERE id = %s", (stored.id,))
        assert await found.fetchone() == ("north",)


async def test_what_cannot_be_written_down_leaves_its_connection_at_hand(pg: PostgresEngine) -> None:
    client = JobsClient(pg)
    await one_after_the_other(client)
    odd: list[object] = [b"no text"]
    with pytest.raises(TypeError, match="bytes"):
        await client.asubmit([Submission(new_job(queue=odd[0]))])
    await pg._pools.aanswered(PATIENCE_S)
    assert begun(pg) == 0


@pytest.mark.parametrize("where", ["before it is sent", "in the midst", "right behind it"])
@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt])
async def test_what_breaks_off_a_send_is_told_once_and_costs_no_connection(
    pg: PostgresEngine, kind: type[BaseException], where: str
) -> None:
    await pg.arun(store.submit([new_job()]))
    plainly, told = PreparedStatements.send, list[object]()

    def broken_off(*given: Any) -> None:
        if where == "right behind it":
            plainly(*given)
        raise kind

    with pytest.MonkeyPatch.context() as patch:
        if where == "in the midst":
            patch.setattr(ConnectionWire, "_write", broken_off)
        else:
            patch.setattr(PreparedStatements, "send", broken_off)
        assert pg.begin(store.submit([new_job()]), lambda _, error: told.append(type(error)))
    await pg._pools.aanswered(PATIENCE_S)
    assert (told, begun(pg)) == ([kind], 0)
    await pg.arun(store.submit([job := new_job()]))
    assert seen(pg, job.id)


async def test_wake_ups_that_gathered_are_sent_though_what_took_them_along_breaks_off(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, posted, told = new_job(), list[str](), list[object]()
    await pg.arun(store.submit_one(new_job(), Tells(["before"])))
    monkeypatch.setattr(at_once, "WakeUpBehind", lambda *_: 1 / 0)
    monkeypatch.setattr(WakeupChannel, "taken_along", lambda _, messages: ["gathered", *messages])
    monkeypatch.setattr(WakeupChannel, "post", lambda _, messages: posted.extend(messages))

    assert pg.begin(store.submit_one(job, Tells(["own"])), lambda _, error: told.append(type(error)))
    await pg._pools.aanswered(PATIENCE_S)
    await asyncio.sleep(0)

    assert (told, posted, begun(pg)) == ([ZeroDivisionError], ["gathered", "own"], 0)


async def test_no_connection_keeps_the_context_of_who_asked_first(pg: PostgresEngine) -> None:
    held: ContextVar[Named] = ContextVar("held")
    left: list[weakref.ref[Named]] = []

    async def asking() -> None:
        left.append(weakref.ref(something := Named()))
        held.set(something)
        await JobsClient(pg).asubmit([plain()])

    for _ in range(3):
        await asyncio.create_task(asking())
    await asyncio.sleep(0)
    gc.collect()
    assert [each() for each in left] == [None, None, None]


def test_a_fork_that_closes_its_engine_leaves_the_connections_to_its_parent(postgres_url: str) -> None:
    engine, loop = postgres_engine(postgres_url), asyncio.new_event_loop()
    engine.run(store.submit([new_job()]))
    loop.run_until_complete(engine.arun(store.submit([new_job()])))
    with psycopg.connect(postgres_url, autocommit=True) as other:
        before = other.execute(OURS).fetchall()
        child = os.fork()
        if child == 0:
            try:
                engine.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.1)  # what the server heard it has done by now
        assert before and other.execute(OURS).fetchall() == before
    loop.run_until_complete(engine.aclose())
    loop.close()
