"""A database for primitives, on each engine in turn, and lent connections of each driver."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator

import pytest

from fencerow import Database
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.db.conftest import lender, lent_engine, loan  # noqa: F401 (fixtures)
from tests.kit.leftovers import no_threads_left


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of the test's own."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('migrated_path')}"
    return str(request.getfixturevalue("lent_postgres_url"))


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    with no_threads_left():
        made = Database(url)
        made.check_or_create()
        yield made
        gc.collect()  # a mutex that a test left behind is given back while there is a database
        await made.aclose()


@pytest.fixture
def moved(database: Database) -> DatabaseClock:
    """Moves the time that the database's statements see."""
    return clock_of(database.engine)
