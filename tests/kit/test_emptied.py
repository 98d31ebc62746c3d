"""Tests that have a database one after the other see nothing of each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencerow.core.store import store
from fencerow.testing.clock import clock_of
from tests.conftest import ROLE
from tests.core.store import stage
from tests.kit.databases import Superuser
from tests.kit.emptied import EmptiedDatabase
from tests.kit.jobs import claim, register, submit


@pytest.fixture
def emptied(superuser: Superuser, _template: str) -> Iterator[EmptiedDatabase]:
    superuser.make("emptied", _template)
    made = EmptiedDatabase(superuser.server, "emptied", ROLE)
    yield made
    made.end()
    superuser.drop("emptied")


def place(emptied: EmptiedDatabase) -> int:
    """The next one in the order of the handovers."""
    counter = "pg_get_serial_sequence('fencerow.handovers', 'place')"
    (row,) = stage.rows(emptied.engine, f"SELECT nextval({counter}) AS place")
    assert isinstance(row["place"], int)
    return row["place"]


def test_rows_counters_queries_and_a_moved_clock_go(emptied: EmptiedDatabase) -> None:
    engine = emptied.engine
    submit(engine)
    assert claim(engine, register(engine))
    engine.queries = engine.queries.altered("clock", "now()", "now() + INTERVAL '1 day'")
    before = engine.run(store.clock())
    assert place(emptied) == 1
    emptied.advance(1e6)

    assert emptied.is_as_new()

    assert engine.run(store.clock()) < before
    assert engine.run(store.list_workers()) == []
    assert stage.dump(engine) == {}
    assert place(emptied) == 1


def test_a_clock_that_the_test_itself_moved_goes_as_time_does(emptied: EmptiedDatabase) -> None:
    before = emptied.engine.run(store.clock())
    clock_of(emptied.engine).advance(1e6)

    assert emptied.is_as_new()

    assert before < emptied.engine.run(store.clock()) < before + 9e11


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE fencerow.jobs ADD COLUMN more text",
        "DROP INDEX fencerow.jobs_lane",
        "GRANT SELECT ON fencerow.jobs TO pg_monitor",
        "ALTER FUNCTION fencerow.us(timestamptz) VOLATILE",
        "DELETE FROM fencerow.schema_migrations",
    ],
)
def test_one_that_was_changed_is_lent_no_more(emptied: EmptiedDatabase, change: str) -> None:
    with emptied.engine.session() as session:
        session.connection.execute(change.encode())

    assert not emptied.is_as_new()
