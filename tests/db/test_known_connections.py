"""A borrowed connection must lead to the database of the jobs, and be in a transaction: else it is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import psycopg
import pytest

from fencerow.client import Client
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.db.adapters.frame import SentText
from fencerow.db.adapters.lent_asyncpg import LentAsyncpg
from fencerow.db.adapters.lent_psycopg import LentSyncPsycopg
from fencerow.db.borrow import borrowed
from fencerow.db.known_connections import KnownConnections, KnownDatabase, database_here
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.errors import OtherDatabase, UnusableConnection
from tests.conftest import postgres_engine
from tests.db.lenders import LENDERS, Lender, Loan
from tests.db.work import seen
from tests.kit.jobs import AnyEngine, new_job

POSTGRES = [lender for lender in LENDERS if lender.dialect == "postgres"]


@pytest.fixture
def other_engine(other_postgres_url: str) -> Any:
    """On another database of the same server, with the same tables."""
    made = postgres_engine(other_postgres_url)
    with made.session() as session:
        session.connection.execute("CREATE TABLE fencerow.mine (n INTEGER PRIMARY KEY)")
    yield made
    made.close()


@pytest.fixture
async def stray(
    lender: Lender, lent_engine: PostgresEngine, other_engine: PostgresEngine
) -> AsyncIterator[Loan]:
    """A connection to the other database, lent to an engine on this one."""
    async with lender.open(lent_engine, other_engine.conninfo) as made:
        made.autocommit = lender.autocommit
        yield made
    await lent_engine.aclose()


@pytest.mark.parametrize("lender", POSTGRES, ids=lambda lender: lender.name)
async def test_a_connection_to_another_database_is_refused_before_anything_is_written(
    stray: Loan, lent_engine: PostgresEngine, other_engine: PostgresEngine
) -> None:
    job = new_job()
    await stray.begin()

    with pytest.raises(UnusableConnection, match=r"leads to database 'test_[0-9]+'") as refused:
        await stray.run(store.submit([job]))

    assert "the jobs of this app are in database" in refused.value.why
    await stray.sql("INSERT INTO fencerow.mine VALUES (2)")  # the user's own transaction goes on
    await stray.end("COMMIT")
    assert await stray.sql("SELECT n FROM fencerow.mine ORDER BY n") == [(1,), (2,)]
    assert not seen(other_engine, job.id) and not seen(lent_engine, job.id)


def test_a_connection_is_asked_once(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = questions(LentSyncPsycopg, monkeypatch)
    engine = postgres_engine(postgres_url)
    engine.run(store.clock())
    with psycopg.connect(postgres_url) as connection:
        borrowed(connection, engine).run(store.submit([new_job()]))
        first = len(asked)
        for _ in range(3):
            borrowed(connection, engine).run(store.submit([new_job()]))

        assert first >= 1
        assert len(asked) == first
    engine.close()


async def test_so_is_one_that_a_pool_hands_out_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--through"):
        pytest.skip("asyncpg's defaults do not work there")
    asked = questions(LentAsyncpg, monkeypatch)
    engine = postgres_engine(postgres_url)
    async with asyncpg.create_pool(postgres_url, min_size=1, max_size=1) as pool:
        for _ in range(3):
            async with pool.acquire() as connection, connection.transaction():
                await borrowed(connection, engine).arun(store.submit([new_job()]))

    assert len(asked) == 2, "once before our engine was asked, and once after"
    await engine.aclose()


async def test_two_threads_that_are_the_first_to_ask_are_both_answered(postgres_url: str) -> None:
    """While one compares with nothing yet, the other has asked, and has written the answer."""
    engine = postgres_engine(postgres_url)
    for meet in (meet_in_threads, meet_in_a_loop):
        known = KnownConnections()
        with psycopg.connect(postgres_url) as first, psycopg.connect(postgres_url) as second:
            await meet(known, engine, first, second)

            assert known.has(first) and known.has(second)
    await engine.aclose()


async def meet_in_threads(known: KnownConnections, engine: PostgresEngine, *connections: Any) -> None:
    here, (first, second) = engine.run(database_here()), connections

    def once() -> None:
        try:
            known.compare(first, here, "connection")
        except OtherDatabase:
            known.run(engine, lambda: known.compare(second, here, "connection"))
            raise

    known.run(engine, once)


async def meet_in_a_loop(known: KnownConnections, engine: PostgresEngine, *connections: Any) -> None:
    here, (first, second) = await engine.arun(database_here()), connections

    async def other() -> None:
        known.compare(second, here, "connection")

    async def once() -> None:
        try:
            known.compare(first, here, "connection")
        except OtherDatabase:
            await known.arun(engine, other)
            raise

    await known.arun(engine, once)


def questions(kind: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts with which connections of this kind are asked where they lead, as they come."""
    asked: list[str] = []
    send = kind.send

    def noted(self: Any, sent: SentText) -> Any:
        if "pg_postmaster_start_time" in sent.text:
            asked.append(sent.text)
        return send(self, sent)

    monkeypatch.setattr(kind, "send", noted)
    return asked


class Failover:
    """An engine that is on another server whenever it is asked."""

    def __init__(self) -> None:
        self.server = 0

    def run(self, operation: Operation[Any]) -> Any:
        self.server += 1
        return KnownDatabase("app", str(self.server), False)

    async def arun(self, operation: Operation[Any]) -> Any:
        return self.run(operation)


class Connection:
    """Something that can be remembered."""


def test_after_a_failover_our_engine_is_asked_again() -> None:
    known, engine, connection = KnownConnections(), Failover(), Connection()

    known.run(engine, lambda: known.compare(Connection(), KnownDatabase("app", "1", False), "connection"))
    known.run(engine, lambda: known.compare(connection, KnownDatabase("app", "2", False), "connection"))

    assert known.has(connection)
    with pytest.raises(OtherDatabase, match="another server"):
        known.run(engine, lambda: known.compare(Connection(), KnownDatabase("app", "1", False), "connection"))


def test_a_connection_to_a_standby_is_left_to_the_server() -> None:
    known = KnownConnections()

    known.compare(Connection(), KnownDatabase("app", "standby", True), "connection")


@pytest.mark.parametrize(
    "lender", [lender for lender in LENDERS if lender.autocommit], ids=lambda lender: lender.name
)
async def test_a_submit_on_a_connection_in_autocommit_is_refused(loan: Loan, lent_engine: AnyEngine) -> None:
    client = Client(lent_engine)
    jobs = [Submission(new_job()), Submission(new_job(), own_id=True)]

    async def submit(each: Submission) -> None:
        if loan.asynchronous:
            await client.asubmit([each], connection=loan.connection)
        else:
            client.submit([each], connection=loan.connection)

    for each in jobs:
        with pytest.raises(
            UnusableConnection, match=r"(?s)no transaction is open .* in autocommit"
        ) as refused:
            await submit(each)
        assert "leave connection= out" in refused.value.fix
        assert not seen(lent_engine, each.job.id)

    await loan.begin()
    for each in jobs:
        await submit(each)
    await loan.end("COMMIT")
    assert all(seen(lent_engine, each.job.id) for each in jobs)
    client.close()
