"""Sessions that cannot carry a job's success are refused at the door, with nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.conftest import ROLE, TEMPLATE
from tests.core.worker.sessions.users import Effect, Users, adds
from tests.core.worker.stage import Stage, working
from tests.db.lenders import place, settled


async def refused(stage: Stage, name: str, code: str = "FR-508") -> str:
    """What a job says that was refused."""
    job = await stage.run(name, attempts_max=1)
    assert job.state == "failed" and code in job.error["message"], job.error
    return str(job.error["message"])


async def test_what_is_no_session_of_its_own_is_refused(users: Users) -> None:
    made: list[Any] = []
    kept: list[Any] = []

    def in_use() -> Any:
        made.append(users.maker())
        (made[0].sync_session if users.kind.awaits else made[0]).begin()
        return made[0]

    def autocommit() -> Any:
        kept.append(users.connected(place(users.jobs), isolation_level="AUTOCOMMIT"))
        return users.sessions(kept[0])

    odd = {
        "an_engine": (lambda: users.engine, "session= got a"),
        "a_generator": (lambda: lambda: (each for each in [users.maker()]), "that gives generator"),
        "a_coroutine": (lambda: awaited, "that gives coroutine"),
        "text": (lambda: "session", "session= got a str"),
        "in_use": (in_use, "is in a transaction already"),
        "two_phases": (lambda: users.sessions(users.engine, twophase=True), "two phases"),
        "autocommit": (autocommit, "no transaction is open"),
        "unbound": (lambda: users.sessions(None), "cannot be used"),
    }
    if users.kind.driver.endswith("asyncpg") and is_pooled(place(users.jobs)):
        # It prepares in one transaction and runs in the next: nobody has that behind a pooler.
        del odd["autocommit"]
    handlers = [users.handler(name, adds(1, "x"), given=given) for name, (given, _) in odd.items()]

    async with working(users.jobs, *handlers) as stage:
        said = {name: await refused(stage, name) for name in odd}

    for name, (_, expected) in odd.items():
        assert expected in said[name], said[name]
    await settled(made[0].close())
    for engine in kept:
        await settled(engine.dispose())
    assert users.names() == []


async def awaited() -> None:
    """A dependency that has to be awaited."""


async def test_a_session_of_the_other_kind_is_refused(users: Users) -> None:
    other: Any = sessionmaker() if users.kind.awaits else async_sessionmaker()
    wanted = "pass your async_sessionmaker" if users.kind.awaits else "pass your sessionmaker"

    async with working(users.jobs, users.handler("pay", adds(1, "x"), given=lambda: other)) as stage:
        assert wanted in await refused(stage, "pay")


async def test_a_session_inside_somebody_elses_transaction_is_refused(users: Users) -> None:
    """A test's way to undo all: its commit commits nothing."""
    if users.kind.awaits:
        async with users.engine.connect() as outer:
            await outer.begin()
            given = users.sessions(outer)
            async with working(users.jobs, users.handler("pay", adds(1, "x"), given=lambda: given)) as stage:
                said = await refused(stage, "pay")
    else:
        with users.engine.connect() as outer:
            outer.begin()
            given = users.sessions(outer)
            async with working(users.jobs, users.handler("pay", adds(1, "x"), given=lambda: given)) as stage:
                said = await refused(stage, "pay")

    assert "in a transaction of somebody else's" in said


@pytest.mark.parametrize("knows_jobs", [False, True], ids=["empty", "of-others"])
async def test_a_session_on_another_database_is_refused(
    users: Users, server: PostgresServer, sqlite_path: Path, knows_jobs: bool
) -> None:
    where = _elsewhere(users, server, sqlite_path, knows_jobs)
    other: Any = users.connected(where)
    maker = users.sessions(other)

    async with working(users.jobs, users.handler("pay", adds(1, "x"), given=lambda: maker)) as stage:
        said = await refused(stage, "pay", "FR-514")
    await settled(other.dispose())
    if users.kind.dialect == "postgres":
        server.drop_database("elsewhere")

    assert "leads to database" in said or "this connection is to" in said


def _elsewhere(users: Users, server: PostgresServer, path: Path, knows_jobs: bool) -> str:
    """Another database, with Fencerow's tables or without."""
    if users.kind.dialect == "sqlite":
        other = path.with_name("other.db")
        if knows_jobs:
            engine = SqliteEngine(other, store.sqlite_queries())
            store.migrate(engine)
            engine.close()
        return str(other)
    if knows_jobs:
        server.create_database("elsewhere", template=TEMPLATE)
        return server.conninfo("elsewhere", ROLE)
    server.create_database("elsewhere")
    return server.conninfo("elsewhere", ROLE)


async def test_a_second_database_of_the_same_session_is_refused(users: Users, sqlite_path: Path) -> None:
    second: Any = users.connected(place(users.jobs))
    maker = users.sessions(users.engine, binds={Effect: second})

    def body(session: Session) -> None:
        session.execute(text("SELECT 1"))
        session.add(Effect(id=1, name="beside"))

    async with working(users.jobs, users.handler("pay", body, given=lambda: maker)) as stage:
        job = await stage.run("pay", attempts_max=1)
    left = int(second.pool.checkedout())
    await settled(second.dispose())

    assert (job.state, job.error["type"]) == ("failed", "fencerow.errors.TransactionMisuse")
    assert (users.names(), left) == ([], 0)


async def test_another_kind_of_database_is_refused(pg: PostgresEngine, sqlite_path: Path) -> None:
    maker = sessionmaker(create_engine(f"sqlite:///{sqlite_path}"))

    def pay(job: Job) -> None:
        with job.transaction(session=maker):
            pass

    async with working(pg, pay) as stage:
        assert "talks to SQLite" in await refused(stage, "pay")
