"""Fixtures for everyone: one real PostgreSQL per pytest process, a fresh migrated database or file per test."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.clock import DatabaseClock, clock_of
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.proxy import FaultProxy
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.kit import servers
from tests.kit.databases import Superuser, copy_files, scratch_folder
from tests.kit.emptied import EmptiedDatabase
from tests.kit.leftovers import no_connections_left, no_log_handlers_left, no_threads_left
from tests.kit.servers import MigratedServer, kept
from tests.proof.race.evidence import (  # noqa: F401 (hooks must be found here)
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
)

# Loaded here, since only this file is read by each of several test processes; `tally` prints how many scenarios passed.
pytest_plugins = [
    "tests.kit.chance",
    "tests.kit.collecting",
    "tests.kit.cost",
    "tests.kit.forks",
    "tests.kit.loops",
    "tests.kit.marks",
    "tests.kit.outside",
    "tests.kit.part",
    "tests.whole.systems.tally",
    "tests.kit.through",
    "tests.kit.verdicts",
]

TEMPLATE = servers.TEMPLATE
ROLE = servers.ROLE
_numbers = itertools.count(1)


def pytest_collection_finish() -> None:
    """Before forks are made: they share the files with which servers begin."""
    kept()


@pytest.fixture(autouse=True)
def _log_as_found() -> Iterator[None]:
    with no_log_handlers_left():
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """A server of this pytest process. Give each test its own database: see `postgres_url`."""
    with MigratedServer(fast=True) as running:
        yield running


@pytest.fixture(scope="session")
def _tcp_superuser() -> Iterator[Superuser]:
    with MigratedServer(fast=True, tcp=True) as running:
        yield (made := Superuser(running))
        made.close()


@pytest.fixture(scope="module")
def tcp_server(_tcp_superuser: Superuser) -> Iterator[PostgresServer]:
    """A server behind a TCP port, where faults can be put in between: role and a migrated database `app`, which is
    the module's own. Who stops the server takes another one: this is that of the modules after it, too."""
    _tcp_superuser.make("app", TEMPLATE)
    yield _tcp_superuser.server
    _tcp_superuser.drop("app")


@pytest.fixture
def proxy(tcp_server: PostgresServer) -> Iterator[FaultProxy]:
    with FaultProxy(tcp_server.port) as made:
        yield made


@pytest.fixture(scope="session")
def superuser(server: PostgresServer) -> Iterator[Superuser]:
    made = Superuser(server)
    yield made
    made.close()


@pytest.fixture(scope="session")
def _template(server: PostgresServer) -> str:
    """The database of which each test gets a copy: its server began with it."""
    return TEMPLATE


@pytest.fixture(scope="session")
def _empty(server: PostgresServer) -> str:
    server.create_role_and_schema(role=ROLE, database="empty")
    return "empty"


@pytest.fixture(scope="session")
def _lite_template() -> Iterator[Path]:
    with scratch_folder() as made:
        engine = SqliteEngine(made / "template", store.sqlite_queries())
        store.migrate(engine)
        engine.close()
        yield engine.path


@pytest.fixture
def postgres_url(superuser: Superuser, pooler: PgBouncer | None, _template: str) -> Iterator[str]:
    """A fresh migrated database, as a role that owns the schema `fencerow` and nothing else."""
    name = f"test_{next(_numbers)}"
    superuser.make(name, _template)
    yield from _lent(superuser, pooler, name)


@pytest.fixture
def other_postgres_url(superuser: Superuser, pooler: PgBouncer | None, _template: str) -> Iterator[str]:
    """Another migrated database of the same server."""
    name = f"test_{next(_numbers)}"
    superuser.make(name, _template)
    yield from _lent(superuser, pooler, name)


@pytest.fixture
def empty_postgres_url(superuser: Superuser, pooler: PgBouncer | None, _empty: str) -> Iterator[str]:
    """The same before the first migration."""
    name = f"empty_{next(_numbers)}"
    superuser.make(name, _empty)
    yield from _lent(superuser, pooler, name)


def _lent(superuser: Superuser, pooler: PgBouncer | None, name: str) -> Iterator[str]:
    yield (pooler or superuser.server).conninfo(name, ROLE)
    try:
        no_connections_left(superuser, name, pooler)
    finally:
        superuser.drop(name)


@pytest.fixture
def sqlite_path() -> Iterator[Path]:
    """Where a SQLite file may be made, in memory if the machine can; nothing is there yet."""
    with scratch_folder() as made:
        yield made / "jobs.db"


@pytest.fixture
def migrated_path(sqlite_path: Path, _lite_template: Path) -> Path:
    """A fresh migrated SQLite file that nobody has opened yet."""
    copy_files(_lite_template, sqlite_path)
    return sqlite_path


@pytest.fixture
async def lite(migrated_path: Path) -> AsyncIterator[SqliteEngine]:
    """A fresh migrated SQLite file."""
    made = SqliteEngine(migrated_path, store.sqlite_queries())
    with no_threads_left():
        yield made
        await made.aclose()


@pytest.fixture
async def pg(postgres_url: str) -> AsyncIterator[PostgresEngine]:
    """A fresh migrated PostgreSQL database."""
    with no_threads_left():
        yield (made := postgres_engine(postgres_url))
        await made.aclose()


@pytest.fixture(scope="session")
def _emptied(superuser: Superuser) -> Iterator[list[EmptiedDatabase]]:
    free: list[EmptiedDatabase] = []
    yield free
    for each in free:
        each.end()


@pytest.fixture
def _emptied_database(
    superuser: Superuser, _template: str, _emptied: list[EmptiedDatabase]
) -> Iterator[EmptiedDatabase]:
    """A database that others had before, and the engine that they had (tests/kit/emptied.py)."""
    if not _emptied:
        superuser.make(name := f"emptied_{next(_numbers)}", _template)
        _emptied.append(EmptiedDatabase(superuser.server, name, ROLE))
    yield (made := _emptied.pop())
    if made.is_as_new():
        _emptied.append(made)
    else:
        made.end()
        superuser.drop(made.name)


@pytest.fixture(scope="session")
def _emptied_awaited(superuser: Superuser) -> Iterator[list[EmptiedDatabase]]:
    free: list[EmptiedDatabase] = []
    yield free
    for each in free:
        each.end()


@pytest.fixture
def lent_postgres_url(request: pytest.FixtureRequest) -> str:
    """For who needs a database and not a new one: that of others before where it can be, else `postgres_url`."""
    made: str = request.getfixturevalue("_emptied_url" if _takes_emptied(request) else "postgres_url")
    return made


@pytest.fixture
def _emptied_url(
    superuser: Superuser, _template: str, _emptied_awaited: list[EmptiedDatabase]
) -> Iterator[str]:
    if not _emptied_awaited:
        superuser.make(name := f"awaited_{next(_numbers)}", _template)
        _emptied_awaited.append(EmptiedDatabase(superuser.server, name, ROLE))
    emptied = _emptied_awaited.pop()
    yield emptied.engine.conninfo
    no_connections_left(superuser, emptied.name, role=ROLE)
    if emptied.is_as_new():
        _emptied_awaited.append(emptied)
    else:
        emptied.end()
        superuser.drop(emptied.name)


@pytest.fixture
async def _emptied_pg(_emptied_url: str) -> AsyncIterator[PostgresEngine]:
    """An engine of its own on a database that others had before: its connections are this event loop's."""
    with no_threads_left():
        yield (made := postgres_engine(_emptied_url))
        await made.aclose()


@pytest.fixture(params=["lite", "pg"], ids=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> SqliteEngine | PostgresEngine:
    """Each of the two in turn, for what both must do. Its database is new, or as new: see `_takes_emptied`."""
    if request.param == "pg" and _takes_emptied(request):
        if inspect.iscoroutinefunction(request.function):
            return cast(PostgresEngine, request.getfixturevalue("_emptied_pg"))
        emptied: EmptiedDatabase = request.getfixturevalue("_emptied_database")
        return emptied.engine
    made: SqliteEngine | PostgresEngine = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def clock(request: pytest.FixtureRequest, engine: SqliteEngine | PostgresEngine) -> DatabaseClock:
    """Moves the time that this engine's statements see: `clock.advance(seconds)`."""
    awaits = inspect.iscoroutinefunction(request.function)
    if isinstance(engine, PostgresEngine) and _takes_emptied(request) and not awaits:
        emptied: EmptiedDatabase = request.getfixturevalue("_emptied_database")
        return emptied
    return clock_of(engine)


def _takes_emptied(request: pytest.FixtureRequest) -> bool:
    """Whether a test may have a database that others had: it needs no new one by name. Not behind a pooler: that is
    asked who is connected."""
    pooled = request.config.getoption("--through") is not None
    return not (pooled or {"postgres_url", "pg"} & set(request.fixturenames))


def postgres_engine(url: str) -> PostgresEngine:
    """An engine on a database of `postgres_url`; whoever makes it closes it."""
    return PostgresEngine(url, store.postgres_queries())
