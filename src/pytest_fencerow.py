"""The pytest plugin: fixtures for tests of code that uses Fencerow. See docs/testing.md.

A module of its own, outside the package: pytest imports every installed plugin in every run, and importing
`fencerow` takes a third of a second. Here nothing is imported, and nothing starts, before a test asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fencerow import App, Config
    from fencerow.testing.binding import Clock
    from fencerow.testing.postgres import PostgresServer
    from fencerow.testing.scratch import PostgresScratch, ScratchDatabase, SqliteScratch

ENGINES = ("postgres", "sqlite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("fencerow_app", "the app under test, as module:attribute", default="")
    parser.addini("fencerow_engine", "what fencerow_database is: postgres or sqlite", default="postgres")
    group = parser.getgroup("fencerow")
    group.addoption("--fencerow-engine", choices=ENGINES, help="what fencerow_database is, for this run")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Show an error of ours where the test's own code met it; what it has to say stands in its text.

    `--full-trace` shows our frames too, and so do our own tests.
    """
    ours, caught = sys.modules.get("fencerow"), call.excinfo
    if ours is None or caught is None or not type(caught.value).__module__.startswith("fencerow"):
        return
    package = Path(str(ours.__file__)).parent
    if item.config.getoption("fulltrace", False) or package.is_relative_to(item.config.rootpath):
        return
    at: TracebackType | None = caught.tb
    while at is not None:
        while at.tb_next is not None and at.tb_next.tb_frame.f_code.co_filename.startswith(f"{package}/"):
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next


@pytest.fixture(scope="session")
def fencerow_prepare() -> Callable[[str], object] | None:
    """Override it to make your own tables: return a function of a database's URL, called once per template."""
    return None


@pytest.fixture
def fencerow_engine(pytestconfig: pytest.Config) -> str:
    """Which engine the tests use. Override it with params=["postgres", "sqlite"] to run them on both."""
    chosen = pytestconfig.getoption("--fencerow-engine") or pytestconfig.getini("fencerow_engine")
    if chosen not in ENGINES:
        raise pytest.UsageError(f"fencerow_engine is {chosen!r}; expected postgres or sqlite")
    return str(chosen)


@pytest.fixture(scope="session")
def fencerow_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test process, from installed programs or a wheel; it ends with the process."""
    from fencerow.errors import NoTestDatabase
    from fencerow.testing.scratch import start_server

    try:
        server = start_server()
    except NoTestDatabase as error:
        pytest.fail("\n".join(error.lines()), pytrace=False)
    with server:
        yield server


@pytest.fixture(scope="session")
def _fencerow_postgres_scratch(
    fencerow_postgres: PostgresServer, fencerow_prepare: Callable[[str], object] | None
) -> PostgresScratch:
    from fencerow.testing.scratch import PostgresScratch

    return PostgresScratch(fencerow_postgres, fencerow_prepare)


@pytest.fixture(scope="session")
def _fencerow_sqlite_scratch(fencerow_prepare: Callable[[str], object] | None) -> Iterator[SqliteScratch]:
    from fencerow.testing.scratch import SqliteScratch

    scratch = SqliteScratch(fencerow_prepare)
    yield scratch
    scratch.close()


@pytest.fixture
def fencerow_database(fencerow_engine: str, request: pytest.FixtureRequest) -> Iterator[ScratchDatabase]:
    """A fresh database of the chosen engine, with Fencerow's tables and yours."""
    scratch = request.getfixturevalue(f"_fencerow_{fencerow_engine}_scratch")
    with scratch.database(_settings(request)) as database:
        yield database


@pytest.fixture
def fencerow_sqlite(
    _fencerow_sqlite_scratch: SqliteScratch, request: pytest.FixtureRequest
) -> Iterator[ScratchDatabase]:
    """A fresh SQLite file, whichever engine is chosen."""
    with _fencerow_sqlite_scratch.database(_settings(request)) as database:
        yield database


@pytest.fixture
def fencerow_user_app(pytestconfig: pytest.Config) -> App:
    """Your app, as the configuration names it. Override it to return the app otherwise."""
    from fencerow.errors import NoTestApp
    from fencerow.testing.binding import named_app

    try:
        return named_app(pytestconfig.getini("fencerow_app"))
    except NoTestApp as error:
        pytest.fail("\n".join(error.lines()), pytrace=False)


@pytest.fixture
def fencerow_app(fencerow_user_app: App, fencerow_database: ScratchDatabase) -> Iterator[App]:
    """Your app, bound to a fresh database while the test runs."""
    from fencerow.testing.binding import begin, bound

    with bound(fencerow_user_app, fencerow_database.url) as app:
        begin(app)
        yield app


@pytest.fixture
def fencerow_clock(fencerow_app: App) -> Clock:
    """Moves the time of the app's database: `fencerow_clock.advance(hours=3)`."""
    from fencerow.testing.binding import Clock

    return Clock(fencerow_app)


def _settings(request: pytest.FixtureRequest) -> Config:
    """The schema and prefix of the app under test decide which tables a database gets."""
    from fencerow import Config

    wants_app: Any = "fencerow_app" in request.fixturenames or request.config.getini("fencerow_app")
    return request.getfixturevalue("fencerow_user_app").config if wants_app else Config()
