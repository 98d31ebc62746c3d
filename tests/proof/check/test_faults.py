"""Each planted fault is found at its line, and its mended twin passes: on both engines, through every driver."""

from __future__ import annotations

import pytest

from fencerow_proof.check import Fault, Question
from fencerow_proof.errors import NothingRecorded
from tests.proof.check.faults import PLANTED, Planted, assert_found, checked, place_of

MENDED = [planted for planted in PLANTED if planted.good]
# What only the other drivers' files have, beside those that every file has.
OTHERS = (
    ("on_asyncpg", "postgres", Planted("insert_without_key", "insert_with_key", Fault.INSERTED_TWICE)),
    ("on_asyncpg", "postgres", Planted("read_then_write", "read_for_update", Fault.RACE)),
    ("on_asyncpg", "postgres", Planted("swallowed_error", None, Fault.SWALLOWED, Question.LOUD)),
    ("on_sqlalchemy", "postgres", Planted("counter", "insert_with_key", Fault.CHANGED_TWICE)),
    ("on_sqlalchemy", "sqlite", Planted("counter", "insert_with_key", Fault.CHANGED_TWICE)),
    ("on_sqlalchemy", "sqlite", Planted("acounter", "ainsert_with_key", Fault.CHANGED_TWICE)),
    ("on_sqlalchemy", "sqlite", Planted("swallowed_error", None, Fault.SWALLOWED, Question.LOUD)),
)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.bad)
def test_sqlite3_a_planted_fault_is_found_where_it_is(planted: Planted) -> None:
    report = checked("on_sqlite3", planted.bad, None, planted.orders)

    if planted.fault is Fault.RACE:  # the read on which the write rests is named as well
        read = place_of("on_sqlite3", f"read: {planted.bad}")
        assert any(place.endswith(read) for finding in report.found(Fault.RACE) for place in finding.related)
    if (
        planted.fault is Fault.REPLACE_RACES
    ):  # on SQLite one file has one writer: it races between transactions
        assert report.found(Fault.REPLACE_TORN) or report.found(Fault.REPLACE_RACES)
    assert_found(report, "on_sqlite3", planted)


@pytest.mark.parametrize("planted", MENDED, ids=lambda planted: planted.good)
def test_sqlite3_a_mended_handler_passes(planted: Planted) -> None:
    report = checked("on_sqlite3", str(planted.good), None, planted.orders)

    assert report.ok, report.text()


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.bad)
def test_psycopg_a_planted_fault_is_found_where_it_is(planted: Planted, empty_url: str) -> None:
    assert_found(checked("on_psycopg", planted.bad, empty_url, planted.orders), "on_psycopg", planted)


@pytest.mark.parametrize("planted", MENDED, ids=lambda planted: planted.good)
def test_psycopg_a_mended_handler_passes(planted: Planted, empty_url: str) -> None:
    report = checked("on_psycopg", str(planted.good), empty_url, planted.orders)

    assert report.ok, report.text()


@pytest.mark.prove
def test_psycopg_a_copy_fills_as_an_insert_does(empty_url: str) -> None:
    planted = Planted("deleted_then_copied", None, Fault.REPLACE_TORN, Question.REPLACE)

    assert_found(checked("on_psycopg", planted.bad, empty_url), "on_psycopg", planted)


@pytest.mark.prove
def test_psycopg_a_column_may_have_any_name(empty_url: str) -> None:
    report = checked("on_psycopg", "word_replaced", empty_url)

    assert report.ok, report.text()


@pytest.mark.parametrize(("module", "engine", "planted"), OTHERS)
def test_the_other_drivers_are_seen_as_well(
    module: str, engine: str, planted: Planted, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("empty_url") if engine == "postgres" else None

    assert_found(checked(module, planted.bad, url, planted.orders), module, planted)
    if planted.good is not None:
        report = checked(module, planted.good, url, planted.orders)
        assert report.ok, report.text()


def test_a_check_that_sees_no_statements_finds_nothing() -> None:
    """The control: with the drivers' patches taken out, the same handler with the same fault says nothing."""
    with pytest.raises(NothingRecorded):
        checked("blind", "insert_without_key", None)
