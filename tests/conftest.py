"""Fixtures for everyone: one real PostgreSQL per pytest process, a fresh migrated database or file per test."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.db.sqlite import SqliteEngine
from fencerow.core.store import store
from fencerow.testing.clock import DatabaseClock, clock_of
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.proxy import FaultProxy
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.kit.leftovers import no_connections_left, no_threads_left
from tests.proof.race.evidence import (  # noqa: F401 (hooks must be found here)
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
)

# Loaded here, since only this file is read by each of several test processes; `tally` prints how many scenarios passed.
pytest_plugins = ["tests.kit.marks", "tests.kit.outside", "tests.whole.systems.tally", "tests.kit.through"]

MEMORY = Path("/dev/shm")
TEMPLATE = "migrated"
ROLE = "app"  # no superuser: it owns its schema and nothing else

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """A server of this pytest process. Give each test its own database: see `postgres_url`."""
    with PostgresServer(fast=True) as running:
        yield running


@pytest.fixture(scope="module")
def tcp_server() -> Iterator[PostgresServer]:
    """A server behind a TCP port, where faults can be put in between: migrated, role and database `app`."""
    with PostgresServer(fast=True, tcp=True) as running:
        engine = postgres_engine(running.create_role_and_schema(role=ROLE, database="app"))
        store.migrate(engine)
        engine.close()
        yield running


@pytest.fixture
def proxy(tcp_server: PostgresServer) -> Iterator[FaultProxy]:
    with FaultProxy(tcp_server.port) as made:
        yield made


@pytest.fixture(scope="session")
def _template(server: PostgresServer) -> str:
    engine = postgres_engine(server.create_role_and_schema(role=ROLE, database=TEMPLATE))
    store.migrate(engine)
    engine.close()
    no_connections_left(server, TEMPLATE)
    return TEMPLATE


@pytest.fixture
def postgres_url(server: PostgresServer, pooler: PgBouncer | None, _template: str) -> Iterator[str]:
    """A fresh migrated database, as a role that owns the schema `fencerow` and nothing else."""
    name = f"test_{next(_numbers)}"
    server.create_database(name, template=_template)
    yield from _lent(server, pooler, name)


@pytest.fixture
def other_postgres_url(server: PostgresServer, pooler: PgBouncer | None, _template: str) -> Iterator[str]:
    """Another migrated database of the same server."""
    name = f"test_{next(_numbers)}"
    server.create_database(name, template=_template)
    yield from _lent(server, pooler, name)


@pytest.fixture
def empty_postgres_url(server: PostgresServer, pooler: PgBouncer | None) -> Iterator[str]:
    """The same before the first migration."""
    name = f"empty_{next(_numbers)}"
    server.create_role_and_schema(role=ROLE, database=name)
    yield from _lent(server, pooler, name)


def _lent(server: PostgresServer, pooler: PgBouncer | None, name: str) -> Iterator[str]:
    yield (pooler or server).conninfo(name, ROLE)
    try:
        no_connections_left(server, name, pooler)
    finally:
        server.drop_database(name)


@pytest.fixture
def sqlite_path() -> Iterator[Path]:
    """Where a SQLite file may be made, in memory if the machine can; nothing is there yet."""
    folder = Path(tempfile.mkdtemp(prefix="fencerow-test-", dir=MEMORY if MEMORY.is_dir() else None))
    yield folder / "jobs.db"
    shutil.rmtree(folder)


@pytest.fixture
async def lite(sqlite_path: Path) -> AsyncIterator[SqliteEngine]:
    """A fresh migrated SQLite file."""
    made = SqliteEngine(sqlite_path, store.sqlite_queries())
    store.migrate(made)
    with no_threads_left():
        yield made
        await made.aclose()


@pytest.fixture
async def pg(postgres_url: str) -> AsyncIterator[PostgresEngine]:
    """A fresh migrated PostgreSQL database."""
    with no_threads_left():
        yield (made := postgres_engine(postgres_url))
        await made.aclose()


@pytest.fixture(params=["lite", "pg"], ids=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> SqliteEngine | PostgresEngine:
    """Each of the two in turn, for what both must do."""
    made: SqliteEngine | PostgresEngine = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def clock(engine: SqliteEngine | PostgresEngine) -> DatabaseClock:
    """Moves the time that this engine's statements see: `clock.advance(seconds)`."""
    return clock_of(engine)


def postgres_engine(url: str) -> PostgresEngine:
    """An engine on a database of `postgres_url`; whoever makes it closes it."""
    return PostgresEngine(url, store.postgres_queries())
