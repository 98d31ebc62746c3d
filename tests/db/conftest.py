"""A lent connection of each driver, each with an engine on the same fresh database; and servers that fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.postgres import PostgresServer
from tests.conftest import postgres_engine
from tests.db.lenders import MINE, OF_EACH_DRIVER, Lender, Loan, place
from tests.db.silence import Silence, engine_to
from tests.kit.pace import slower


@pytest.fixture(params=OF_EACH_DRIVER, ids=lambda lender: lender.name)
def lender(request: pytest.FixtureRequest) -> Lender:
    found: Lender = request.param
    return found


@pytest.fixture
def lent_engine(lender: Lender, request: pytest.FixtureRequest) -> Iterator[SqliteEngine | PostgresEngine]:
    made: SqliteEngine | PostgresEngine
    if request.config.getoption("--through") and lender.name == "async-session-asyncpg-autocommit":
        pytest.skip(
            "SQLAlchemy prepares in one transaction and runs in the next: nobody has that behind a pooler"
        )
    if lender.dialect == "sqlite":
        made = SqliteEngine(
            request.getfixturevalue("migrated_path"), store.sqlite_queries(), busy_timeout_s=slower(5.0)
        )
    else:
        made = postgres_engine(request.getfixturevalue("postgres_url"))
    with made.session() as session:
        session.connection.execute(f"CREATE TABLE {MINE[made.dialect]} (n INTEGER PRIMARY KEY)")
    yield made
    made.close()


@pytest.fixture
async def loan(lender: Lender, lent_engine: SqliteEngine | PostgresEngine) -> AsyncIterator[Loan]:
    async with lender.open(lent_engine, place(lent_engine)) as made:
        made.autocommit = lender.autocommit
        yield made
    await lent_engine.aclose()  # what the test has used in this loop


# --- a server that falls silent --------------------------------------------------------------------


@pytest.fixture
def silence(tcp_server: PostgresServer) -> Iterator[Silence]:
    with Silence(tcp_server.port) as made:
        yield made


@pytest.fixture
async def far(tcp_server: PostgresServer, silence: Silence) -> AsyncIterator[PostgresEngine]:
    """An engine beyond the silence, connected in both ways."""
    engine = engine_to(tcp_server, silence)
    await asyncio.to_thread(engine.run, store.clock())
    await engine.arun(store.clock())
    yield engine
    await engine.aclose()


@pytest.fixture
def near(tcp_server: PostgresServer) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(tcp_server.conninfo("app", "app"), store.postgres_queries())
    yield engine
    engine.close()
