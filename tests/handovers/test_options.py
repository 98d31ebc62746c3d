"""What a job says of its handover, what is refused, and that every way to submit lines up."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
import pytest

from fencerow import App, InvalidInput
from fencerow.app import Unique
from fencerow.core.client.forms import COPY_ROWS_MIN
from fencerow.core.model.ids import new_id
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import DeclarationError
from fencerow.handovers import HandoverTo
from fencerow.testing import drain
from tests.core.store.stage import rows
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine


def answer(app: App, **given: Any) -> Any:
    @app.job(name="answer", **given)
    def handler(channel: str, text: str = "") -> str:
        return text

    return handler


def lined(engine: AnyEngine) -> list[tuple[object, ...]]:
    found = rows(engine, "SELECT receiver, key, hold_s FROM {handovers} ORDER BY place")
    return [(each["receiver"], each["key"], each["hold_s"]) for each in found]


def by_channel(channel: str, **_: object) -> str | None:
    return channel or None


def test_the_key_is_computed_from_the_arguments_or_said(engine: AnyEngine) -> None:
    app = app_on(engine)
    job = answer(app, handover=HandoverTo("bot", key=by_channel, wait_for_earlier_s=5))
    job.submit("a")
    job.submit("")
    job.using(handover="said").submit("b")
    job.using(handover=False).submit("c")
    job.using(handover=by_channel).submit("d")

    assert lined(engine) == [("bot", "a", 5.0), ("default", "said", 600.0), ("default", "d", 600.0)]
    app.close()


def test_every_way_to_submit_lines_up_in_order(engine: AnyEngine) -> None:
    app = app_on(engine)
    job = answer(app, handover=by_channel)
    many = [job.call(f"many {number:04}") for number in range(COPY_ROWS_MIN + 1)]

    app.submit_many(many)
    app.submit_many([job.using(key="k").call("keyed"), job.using(id=new_id()).call("own id")])
    job.using(unique=True).submit("unique")
    with engine.session() as session:
        job.using(connection=session.connection).submit("mine")

    keys = [str(key) for _, key, _ in lined(engine)]
    assert keys[: len(many)] == [f"many {number:04}" for number in range(len(many))]
    assert sorted(keys[len(many) :]) == ["keyed", "mine", "own id", "unique"]
    app.close()


def test_an_id_whose_job_ended_and_is_gone_keeps_its_place_and_has_not_ended(engine: AnyEngine) -> None:
    app = app_on(engine)
    job, own, state = answer(app), new_id(), "SELECT state, result, hold_s FROM {handovers}"
    job.using(id=own, handover="k").submit("a")
    drain(app)
    (before,) = rows(engine, state)
    rows(engine, "DELETE FROM {finished_jobs} RETURNING id")

    job.using(id=own, handover=HandoverTo("bot", key=by_channel, wait_for_earlier_s=5)).submit("b")

    assert before["state"] == "succeeded"
    assert [tuple(each.values()) for each in rows(engine, state)] == [(None, None, 5.0)]
    assert lined(engine) == [("bot", "b", 5.0)]
    drain(app)
    assert [each["state"] for each in rows(engine, state)] == ["succeeded"]
    app.close()


def test_a_job_that_is_replaced_keeps_its_place_and_takes_the_new_key(engine: AnyEngine) -> None:
    app = app_on(engine)
    job = answer(app, handover=by_channel, unique=Unique("u", on_conflict="replace"))
    job.submit("first")
    job.using(unique=False).submit("second")
    assert job.submit("other").answer == "replaced"

    assert [key for _, key, _ in lined(engine)] == ["other", "second"]
    app.close()


@pytest.mark.parametrize("wrong", [7, "", HandoverTo(key=lambda nothing: "k")])
def test_what_cannot_be_used_is_refused_where_it_is_declared(engine: AnyEngine, wrong: Any) -> None:
    app = app_on(engine)
    with pytest.raises((DeclarationError, InvalidInput)):
        answer(app, handover=wrong)
    app.close()


@pytest.mark.parametrize("given", [{"wait_for_earlier_s": -1}, {"receiver": ""}, {"key": ""}])
def test_a_handover_that_cannot_be_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        HandoverTo(**{"key": "k", **given})


@pytest.mark.parametrize(
    "given", [{"ephemeral": True}, {"handover": lambda **_: 7}, {"handover": lambda **_: 1 / 0}]
)
def test_a_submit_that_cannot_be_handed_over_stores_nothing(engine: AnyEngine, given: dict[str, Any]) -> None:
    app = app_on(engine)
    job = answer(app, **{"handover": "k", **given})

    with pytest.raises(InvalidInput):
        job.submit("a")

    assert rows(engine, "SELECT id FROM {jobs}") == [] and lined(engine) == []
    app.close()


@pytest.mark.parametrize("wrong", ["'NaN'", "'Infinity'", "'-Infinity'", "9e999", "1e300", "-1"])
def test_a_hold_that_is_no_number_of_seconds_is_refused_at_the_door(engine: AnyEngine, wrong: str) -> None:
    """One such row of a role that may only submit ended every list of handovers."""
    if engine.dialect == "sqlite":
        wrong = "NULL" if wrong == "'NaN'" else wrong  # which it stores in its place
    elif wrong == "9e999":
        wrong = "'Infinity'"
    values = f"'{new_id()}', 'bot', 'k', {wrong}, 'n', (SELECT lined_at FROM {{handovers}})"
    app = app_on(engine)
    answer(app, handover="k").submit("a")

    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.CheckViolation)):
        rows(
            engine,
            f"INSERT INTO {{handovers}} (job_id, receiver, key, hold_s, name, lined_at) VALUES ({values})",
        )
    app.close()


@pytest.mark.parametrize("wrong", ["infinity", "-infinity", "4000-01-01 BC"])
def test_nor_is_an_instant_that_is_none(pg: PostgresEngine, wrong: str) -> None:
    values = f"'{new_id()}', 'bot', 'k', 1, 'n', '{wrong}'"

    with pytest.raises(psycopg.errors.CheckViolation):
        rows(
            pg, f"INSERT INTO {{handovers}} (job_id, receiver, key, hold_s, name, lined_at) VALUES ({values})"
        )
