"""Rows of limits that our own code never writes: every other limit gives its turns, and people see all of them."""

from __future__ import annotations

import pytest

from fencerow import Config
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit, limits
from fencerow.limits.checks import examine_limits
from fencerow.limits.looking import look
from fencerow.limits.named import UNREAD_S
from fencerow.testing.clock import clock_of
from fencerow.turns import handing, looks
from tests.kit.jobs import AnyEngine, new_job, submit

DEEP = '{"n":' * 3_000 + "1" + "}" * 3_000


def write(engine: AnyEngine, statement: str) -> None:
    names = "fencerow." if engine.dialect == "postgres" else "fencerow_"
    with engine.session() as session:
        session.connection.execute(statement.replace("fencerow.", names))


def two(engine: AnyEngine) -> None:
    for name in ("bad", "good"):
        engine.run(limits.define(Limit(name, at_once=1), actor="ada", reason=None))


@pytest.mark.parametrize("said", [DEEP, '{"x":' + DEEP + "}", "17", "no"])
def test_what_is_remembered_of_one_keeps_no_turn_of_another(engine: AnyEngine, said: str) -> None:
    two(engine)
    jobs = submit(engine, *(new_job(limits=(name,)) for name in ("bad", "good")))
    now = "now()" if engine.dialect == "postgres" else "0"
    write(
        engine, f"INSERT INTO fencerow.limit_states (name, state, changed_at) VALUES ('bad', '{said}', {now})"
    )

    # What is remembered of it is gone, as if it were new: so it gives its turn, too.
    assert {each.id for each in engine.run(handing.hand_over()).queued} == set(jobs)
    assert engine.run(look("bad", limit=1)) is not None


@pytest.mark.parametrize("said", [DEEP, '{"hours":' + DEEP + "}", "17", '{"at_once":' + "9" * 5_000 + "}"])
def test_a_definition_that_means_nothing_binds_its_own_jobs_alone(engine: AnyEngine, said: str) -> None:
    two(engine)
    _waits, goes = submit(engine, *(new_job(limits=(name,)) for name in ("bad", "good")))
    write(engine, f"UPDATE fencerow.limits SET definition = '{said}' WHERE name = 'bad'")

    assert [each.id for each in engine.run(handing.hand_over()).queued] == [goes]
    assert any("nothing starts under it" in each.found for each in examine_limits(engine, Config()))


def test_a_worker_that_cannot_read_one_takes_no_arrival_from_those_who_can(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its image has no time zones."""
    engine.run(limits.define(Limit("a", hours="00:00-24:00 Europe/Berlin"), actor="ada", reason=None))
    jobs = submit(engine, new_job(limits=("a",)))
    with monkeypatch.context() as here:
        here.setattr("fencerow.calendar.zones.zone_names", frozenset[str])
        assert engine.run(handing.hand_over()).queued == []
    assert not engine.run(looks.turns_wanted()).at_once

    clock_of(engine).advance(UNREAD_S)

    assert engine.run(looks.turns_wanted()).at_once
    assert [each.id for each in engine.run(handing.hand_over()).queued] == jobs


@pytest.mark.parametrize("column", ["revision", "version", "set_at"])
def test_a_column_that_cannot_be_read_hides_no_limit(lite: SqliteEngine, column: str) -> None:
    two(lite)
    write(lite, f"UPDATE fencerow.limits SET {column} = 'no number' WHERE name = 'bad'")

    found = {each.name: each for each in lite.run(limits.read_limits())}
    told = [each.found for each in examine_limits(lite, Config())]

    assert (found["bad"].damaged, found["good"].damaged) == ((column.replace("set_at", "set_at_us"),), ())
    assert found["bad"].limit.at_once == 1
    assert any(each.startswith("bad: ") and "cannot be read" in each for each in told)
